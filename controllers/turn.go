package controllers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/pace"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Turns has the targets that wait for their turn to be released, by Gate.
type Turns = pace.Turns[tally.Gate, target.Key]

// turnOf returns what decides on the turn of a target.
func turnOf(g *v1alpha1.Gate, t *target.Object) pace.Item {
	item := pace.Item{Namespace: t.GetNamespace(), Name: t.GetKind() + "/" + t.GetName()}
	if verdict.IsCertificate(t) {
		notAfter, _, _ := unstructured.NestedString(t.Object, "status", "notAfter")
		item.Expiry, _ = time.Parse(time.RFC3339, notAfter) // one that has none has its turn last
	}
	item.Failed = slices.ContainsFunc(g.Status.Failures, func(f v1alpha1.TargetFailure) bool {
		return f.Kind == t.GetKind() && f.Namespace == t.GetNamespace() && f.Name == t.GetName()
	})
	return item
}
