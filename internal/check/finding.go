// Package check finds what is wrong with an installation, from objects that somebody else has read. Each check is in a file of its own
// and has no client.
package check

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Severity says how bad a finding is.
type Severity string

// The severities. An error means that Gates do not do what their specs say.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is something that a person wants to know of an installation.
type Finding struct {
	Severity Severity `json:"severity"`
	// Object is what it is about, such as Gate flux-system/production.
	Object string `json:"object"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Action says what to do about it, empty if there is nothing to do.
	Action string `json:"action,omitempty"`
}

var order = []Severity{Error, Warning, Note}

// Sort sorts findings: the worst first, and otherwise in the order in which they were made.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
}

// nameOf returns kind, namespace and name of an object.
func nameOf(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetKind() + " " + obj.GetName()
	}
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}
