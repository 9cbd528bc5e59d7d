package explain_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/explain"
)

// gated is a GatedSource that is pinned to a revision, and whose condition Approved has a status and a reason.
func gated(status, reason string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "GatedSource", "metadata": map[string]any{"namespace": "shop", "name": "apps"},
		"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "apps"}},
		"status": map[string]any{
			"gated": map[string]any{"revision": "main@sha1:a"}, "pending": map[string]any{"revision": "main@sha1:b"},
			"conditions": []any{map[string]any{"type": "Approved", "status": status, "reason": reason, "lastTransitionTime": "2026-11-23T12:00:00Z"}},
		},
	}}
}

func TestAGatedSourceIsHeldWhileGatesKeepARevision(t *testing.T) {
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

func TestTheRevisionThatAGatedSourceHoldsBackIsThatOfItsSource(t *testing.T) {
	source := &unstructured.Unstructured{Object: map[string]any{"kind": "GitRepository", "status": map[string]any{"artifact": map[string]any{"revision": "main@sha1:b"}}}}
	w := explain.Wait(gated("False", "GateClosed"), source, time.Time{})
	if w.Reason != explain.NewRevision || w.Revision != "main@sha1:a" || w.Waits != "main@sha1:b" || w.Source == nil || w.Source.Name != "apps" {
		t.Errorf("got %+v", w)
	}
}
