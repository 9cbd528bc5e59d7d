// Package check finds problems with an installation. Each check is in its own file and has no client. The caller reads the objects.
package check

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Severity is the severity of a finding.
type Severity string

// The severities. An error means that Gates do not work as specified.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is a problem with an installation, or a note about it.
type Finding struct {
	Severity Severity `json:"severity"`
	// Object is the object that the finding is about, such as Gate flux-system/production.
	Object string `json:"object"`
	// Message describes the problem.
	Message string `json:"message"`
	// Action is the next step, empty if there is none.
	Action string `json:"action,omitempty"`
}

var order = []Severity{Error, Warning, Note}

// Sort sorts findings by severity, most severe first. It is stable.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
}

// nameOf returns the kind, namespace and name of an object.
func nameOf(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetKind() + " " + obj.GetName()
	}
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}
