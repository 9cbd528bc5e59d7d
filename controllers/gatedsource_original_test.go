package controllers_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// A Gate over the source keeps all from the cluster that the source has not brought yet, and nothing else.
func TestANewGatedSourceOfASourceThatAGateHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1alpha1.GatedSourceSpec
		edit string
		at   string
		says string
	}{
		"pins what the source has":                         {v1alpha1.GatedSourceSpec{}, "", "a", "Approved True UpToDate"},
		"pins in its spec what the source has":             {v1alpha1.GatedSourceSpec{Revision: commit("a")}, "", "a", "Approved True PinnedInSpec"},
		"waits for what the source has not":                {v1alpha1.GatedSourceSpec{Revision: commit("b")}, "", "", "Approved False RevisionNotSeen"},
		"takes another place of the same commit":           {v1alpha1.GatedSourceSpec{Revision: commit("a")}, `{"spec":{"url":"https://git.example.com/moved"}}`, "a", "Approved True PinnedInSpec"},
		"waits if the commit would bring other files":      {v1alpha1.GatedSourceSpec{Revision: commit("a")}, `{"spec":{"ignore":"/tests"}}`, "", "Approved False SourceNotFound"},
		"waits for approval of what the source has":        {v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}}, "", "", "Approved False WaitingApproval"},
		"waits for approval if it would bring other files": {v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}}, `{"spec":{"recurseSubmodules":true}}`, "", "Approved False SourceNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follow(t, tc.spec)
			g := f.ClosedGate("freeze", v1alpha1.TargetReference{Kind: "GitRepository", Name: "apps"})
			f.Reconcile(g)
			if original := f.source("apps"); !harness.Suspended(original) || harness.HeldBy(original) == "" {
				t.Fatalf("it is not held: %v", original.Object["spec"])
			}
			if tc.edit != "" {
				f.Must(f.Merge(f.source("apps"), "%s", tc.edit))
			}
			f.looks()
			f.isAt(tc.at, tc.says)
			f.Open(g, f.FakeClock.Now())
			f.Reconcile(g)
			f.push("b")
			if f.looks(); tc.spec.Approvals == nil && tc.at == "" && tc.edit == "" {
				f.isAt("b", "Approved True PinnedInSpec")
			}
		})
	}
}

// source-controller notes the generation of what it could not fetch in the condition alone.
func TestAPinThatCannotBeFetchedSaysSo(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.looks()
	f.fetches("apps-gated", commit("a"))
	f.push("b")
	f.looks()
	f.isAt("b", "Ready Unknown Progressing")
	pinned := f.source("apps-gated")
	f.Must(cluster.Client.Status().Patch(f.Context(), pinned, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"GitOperationFailed","message":"object not found",
		"observedGeneration":%d,"lastTransitionTime":"2026-11-23T12:00:00Z"}]}}`, pinned.GetGeneration()))))
	f.looks()
	f.isAt("b", "Ready False GitOperationFailed")
}
