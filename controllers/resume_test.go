package controllers_test

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// If the condition of a hold could not be written, a resumed target is held again, because it is unknown whether it was held before. If the
// condition was written, the target stays resumed.
func TestRespectLeavesResumedTargetWithoutCondition(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"it is resumed and cannot say so": false, "it cannot say that it is held and is resumed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.Gate("production", v1alpha1.GateSpec{
				Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")},
			})
			if !before {
				w.Reconcile(g)
				w.Resume(app)
			}
			w.Writes.Before = failing("patch-status Kustomization")
			if _, err := w.Try(g); err == nil {
				t.Fatal("its condition was written")
			}
			if before {
				w.Resume(app)
			}
			for range 2 {
				if _, err := w.Try(g); err == nil || w.Suspended(app) != before {
					t.Errorf("held %t, error %v", w.Suspended(app), err)
				}
			}
			w.Writes.Reset()
			w.Reconcile(g)
			if before {
				w.ExpectHeld(app, g)
				w.Resume(app)
				w.Reconcile(g)
			}
			w.Expect(app, suspension{HeldBy: key(g), Approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
		})
	}
	t.Run("it cannot be read again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")}})
		w.Reconcile(g)
		w.Resume(app)
		w.APIReader = brokenGet{w.APIReader, "Kustomization"}
		w.Writes.Before = once("patch-status Kustomization", conflict)
		if _, err := w.Try(g); err == nil {
			t.Fatal("it was read")
		}
		w.APIReader = cluster.Client
		w.Reconcile(g)
		w.Expect(app, suspension{HeldBy: key(g), Approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
	})
}

// brokenGet is a client that cannot get objects of a kind.
type brokenGet struct {
	client.Reader
	kind string
}

// Get implements client.Reader.
func (b brokenGet) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind == b.kind {
		return errBroken
	}
	return b.Reader.Get(ctx, key, obj, opts...)
}

func TestEventIsEmittedAfterRetryOfCondition(t *testing.T) {
	for name, fail := range map[string]func() error{"conflict": conflict, "failure": func() error { return errBroken }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.NewKustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			for _, reason := range []string{v1alpha1.GateClosedReason, v1alpha1.GateOpenedReason} {
				w.Writes.Before = once("patch-status Kustomization", fail)
				if _, err := w.Try(g); err != nil {
					w.Reconcile(g)
				}
				if events := w.Events.Take("Kustomization/apps Gate"); len(events) != 1 || !strings.Contains(events[0], reason) {
					t.Errorf("want one event %s, got %q", reason, events)
				}
				w.Open(g, start)
			}
		})
	}
}
