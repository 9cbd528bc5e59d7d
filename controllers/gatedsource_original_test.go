package controllers_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The original source has fetched commit a with its current spec. While the Gate suspends it, no other commit may be pinned.
func TestGatedSourceWithHeldSource(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{Revision: commit("b")})
	g := f.ClosedGate("freeze", v1alpha1.TargetReference{Kind: "GitRepository", Name: "apps"})
	f.Reconcile(g)
	if original := f.source("apps"); !harness.Suspended(original) || harness.HeldBy(original) == "" {
		t.Fatalf("it is not held: %v", original.Object["spec"])
	}
	f.looks()
	f.isAt("", "Approved False RevisionNotSeen")
	f.Edit(f.g, func() { f.g.Spec.Revision = commit("a") })
	f.Must(f.Merge(f.source("apps"), `{"spec":{"ignore":"/tests"}}`))
	f.looks()
	f.isAt("", "Approved False SourceNotFound")
	f.Must(f.Merge(f.source("apps"), `{"spec":{"ignore":null}}`))
	f.looks()
	f.isAt("a", "Approved True PinnedInSpec")
	f.Edit(f.g, func() { f.g.Spec.Revision = commit("b") })
	f.Open(g, f.FakeClock.Now())
	f.Reconcile(g)
	f.push("b")
	f.looks()
	f.isAt("b", "Approved True PinnedInSpec")
}
