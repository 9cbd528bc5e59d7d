package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// brokenTargets cannot select the targets of some kinds.
type brokenTargets struct {
	view.TargetReader
	kinds map[string]error
}

// Readable implements TargetReader.
func (b brokenTargets) Readable(ctx context.Context, adapter target.Adapter) error {
	if err := b.kinds[adapter.GroupKind().Kind]; err != nil {
		return err
	}
	return b.TargetReader.Readable(ctx, adapter)
}

func (b brokenTargets) Select(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) ([]*target.Object, error) {
	if b.kinds[adapter.GroupKind().Kind] != nil {
		return nil, nil
	}
	return b.TargetReader.Select(ctx, adapter, namespace, ref)
}

// failuresOf returns the failures as "Kind/name reason".
func failuresOf(g *v1alpha1.Gate) []string {
	var all []string
	for _, f := range g.Status.TargetFailures() {
		all = append(all, fmt.Sprintf("%s/%s %s", f.Kind, f.Name, f.Reason))
	}
	return all
}

func TestFailureStopsNoOtherTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		first   v1alpha1.TargetReference
		breaks  func(*world)
		failure string
		message string
		// retried is true if an error is returned, so that the queue backs off.
		retried bool
	}{
		"an unsupported kind": {
			first: v1alpha1.TargetReference{Kind: "Deployment", Name: "a"}, failure: "Deployment/a UnsupportedKind", message: "kind Deployment is not supported"},
		"a kind of an unsupported group": {
			first: v1alpha1.TargetReference{APIVersion: "example.org/v1", Kind: "Kustomization", Name: "a"}, failure: "Kustomization/a UnsupportedKind", message: "not supported"},
		"a kind that is not installed": {
			first: v1alpha1.TargetReference{Kind: "Bucket", Name: "*"},
			breaks: func(w *world) {
				w.Targets = brokenTargets{w.Targets, map[string]error{"Bucket": fmt.Errorf("kind Bucket %w", view.ErrNotInstalled)}}
			},
			failure: "Bucket/* CRDNotFound", message: "kind Bucket is not installed"},
		"another namespace without permission": {
			first:   v1alpha1.TargetReference{Kind: "Kustomization", Name: "a", Namespace: "default"},
			failure: "Kustomization/a AccessDenied", message: `targets in namespace "default" cannot be held from namespace`},
		"a kind that cannot be read": {
			first: v1alpha1.TargetReference{Kind: "Bucket", Name: "*"},
			breaks: func(w *world) {
				w.Targets = brokenTargets{w.Targets, map[string]error{"Bucket": errBroken}}
			},
			failure: "Bucket/* ReadFailed", message: errBroken.Error(), retried: true},
		"a target that cannot be written": {
			first: named("broken"),
			breaks: func(w *world) {
				w.NewKustomization("broken", nil)
				w.Writes.Before = failing("apply Kustomization/broken")
			},
			failure: "Kustomization/broken WriteFailed", message: errBroken.Error(), retried: true},
		"a condition that cannot be written": {
			first: named("broken"),
			breaks: func(w *world) {
				w.NewKustomization("broken", nil)
				w.Writes.Before = failing("patch-status Kustomization/broken")
			},
			failure: "Kustomization/broken StatusWriteFailed", message: errBroken.Error(), retried: true},
		"a condition of an activation that cannot be written": {
			first: certificateRef("web"),
			breaks: func(w *world) {
				w.activating("web")
				w.Writes.Before = failing("apply-status Certificate/web")
			},
			failure: "Certificate/web StatusWriteFailed", message: errBroken.Error(), retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			if tc.breaks != nil {
				tc.breaks(w)
			}
			g := w.ClosedGate("production", tc.first, named("apps"))
			_, err := w.Try(g)
			if (err != nil) != tc.retried || err != nil && !strings.Contains(err.Error(), errBroken.Error()) {
				t.Errorf("error %v", err)
			}
			w.ExpectHeld(app, g)
			if got := failuresOf(g); !slices.Equal(got, []string{tc.failure}) {
				t.Fatalf("failures %q, want %q", got, tc.failure)
			}
			if got := g.Status.TargetFailures()[0]; !strings.Contains(got.Message, tc.message) || !got.RecordedAt.Time.Equal(start) {
				t.Errorf("got %+v, want message %q", got, tc.message)
			}
			if ready := conditions.Get(g, meta.ReadyCondition); ready.Status != "False" || ready.Reason != v1alpha1.TargetsFailedReason || !strings.Contains(ready.Message, tc.message) {
				t.Errorf("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
			}
			if conditions.IsTrue(g, meta.ReconcilingCondition) != tc.retried {
				t.Errorf("Reconciling is %v", conditions.Get(g, meta.ReconcilingCondition))
			}
			if got := g.Status.Targets; got.Failed != 1 || got.Held != 1 && tc.failure != "Kustomization/broken StatusWriteFailed" {
				t.Errorf("counts %+v", got)
			}
			if conditions.IsTrue(g, v1alpha1.OpenedCondition) {
				t.Error("opened")
			}
			// If a kind cannot be read for a moment, its objects do not count as no longer governed.
			for _, err := range []error{errBroken, view.ErrNotInstalled} {
				w.Targets = brokenTargets{w.Targets, map[string]error{"Kustomization": err}}
				_, _ = w.Try(g)
				w.ExpectHeld(app, g)
			}
		})
	}
}
