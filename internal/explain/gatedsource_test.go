package explain_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/explain"
)

// gated returns a GatedSource that is pinned to a revision. status and reason are those of its condition Approved.
func gated(status, reason string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "GatedSource", "metadata": map[string]any{"namespace": "shop", "name": "apps"},
		"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "apps"}},
		"status": map[string]any{
			"pinned": map[string]any{"revision": "main@sha1:a"}, "pending": map[string]any{"revision": "main@sha1:b"},
			"conditions": []any{map[string]any{"type": "Approved", "status": status, "reason": reason, "lastTransitionTime": "2026-11-23T12:00:00Z"}},
		},
	}}
}

func TestGatedSourceIsHeldWhileGatesKeepRevision(t *testing.T) {
	for _, tc := range []struct {
		status, reason string
		want           bool
	}{
		{"False", "GateClosed", true},
		{"False", "GateNotFound", true},
		{"False", "WaitingApproval", false},
		{"True", "UpToDate", false},
	} {
		if got := explain.IsHeld(gated(tc.status, tc.reason)); got != tc.want {
			t.Errorf("%s %s: held is %v", tc.status, tc.reason, got)
		}
	}
}

func TestGatedSourcePendingRevisionIsFromStatus(t *testing.T) {
	for name, source := range map[string]*unstructured.Unstructured{
		"its source has a newer one":     {Object: map[string]any{"kind": "GitRepository", "status": map[string]any{"artifact": map[string]any{"revision": "main@sha1:c"}}}},
		"its source may not be seen":     nil,
		"its source has the pinned one":  {Object: map[string]any{"kind": "GitRepository", "status": map[string]any{"artifact": map[string]any{"revision": "main@sha1:a"}}}},
		"its source is not fetched, yet": {Object: map[string]any{"kind": "GitRepository"}},
	} {
		w := explain.Wait(gated("False", "GateClosed"), source, time.Time{})
		if w.Reason != explain.NewRevision || w.Revision != "main@sha1:a" || w.Waits != "main@sha1:b" || w.Source == nil || w.Source.Name != "apps" || w.Approvals != nil {
			t.Errorf("%s: %+v", name, w)
		}
	}
	idle := gated("True", "UpToDate")
	unstructured.RemoveNestedField(idle.Object, "status", "pending")
	if w := explain.Wait(idle, nil, time.Time{}); w.Reason != explain.NothingNew || w.Waits != "" {
		t.Errorf("%+v", w)
	}
}

func TestGatedSourceHasNumberOfMissingApprovals(t *testing.T) {
	obj := gated("False", "WaitingApproval")
	for path, value := range map[string]any{
		"approvals": map[string]any{"required": int64(2)}, "pinnedName": "pinned",
	} {
		if err := unstructured.SetNestedField(obj.Object, value, "spec", path); err != nil {
			t.Fatal(err)
		}
	}
	approval := func(revision, by string) any {
		return map[string]any{"revision": revision, "approvedBy": by, "recordedAt": "2026-11-23T12:00:00Z"}
	}
	approvals := []any{approval("main@sha1:b", "alice"), approval("main@sha1:a", "bob"), approval("main@sha1:b", "alice")}
	if err := unstructured.SetNestedSlice(obj.Object, approvals, "status", "approvals"); err != nil {
		t.Fatal(err)
	}
	if w := explain.Wait(obj, nil, time.Time{}); w.Approvals == nil || *w.Approvals != (explain.Approvals{Has: 1, Needs: 2}) {
		t.Errorf("%+v", w.Approvals)
	}
	if !explain.NeedsApproval(obj) || explain.NeedsApproval(gated("False", "GateClosed")) || explain.NeedsApproval(kustomization()) {
		t.Error("it needs no approval, or another one does")
	}
	if ref, ok := explain.Pinned(obj); !ok || ref.Kind != "GitRepository" || ref.Namespace != "shop" || ref.Name != "pinned" {
		t.Errorf("%+v", ref)
	}
	if _, ok := explain.Pinned(kustomization()); ok {
		t.Error("a Kustomization pins nothing")
	}
}
