package controllers_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
)

func TestConflictIsRetried(t *testing.T) {
	for _, at := range []string{"apply Kustomization", "patch-status Kustomization"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			w.Writes.Before = once(at, conflict)
			w.Reconcile(g)
			w.ExpectHeld(app, g)
			w.Open(g, start)
			w.Writes.Before = once(at, conflict)
			w.Reconcile(g)
			w.ExpectReleased(app, g)
			if len(g.Status.TargetFailures()) > 0 {
				t.Errorf("failures %v", g.Status.TargetFailures())
			}
		})
	}
}

func TestPersistentConflictIsReportedAndRetried(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Writes.Before = func(write string) error {
		if write == "apply Kustomization/apps" {
			return conflict()
		}
		return nil
	}
	if _, err := w.Try(g); err == nil {
		t.Error("no error")
	}
	if n := len(w.Writes.Take("apply Kustomization")); n != ownwrites.Retries+1 {
		t.Errorf("tried %d times, want %d", n, ownwrites.Retries+1)
	}
	w.ExpectUntouched(app)
	w.Writes.Reset()
	w.Reconcile(g)
	w.ExpectHeld(app, g)
}

// Another client writes the target between the read and the write.
func TestConcurrentChangeIsReconciledAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		opens   bool
		at      string
		patches []string
		expect  func(*world, *v1alpha1.Gate)
	}{
		"a label is set while the gate closes": {
			false, "apply Kustomization", []string{`{"metadata":{"labels":{"a":"b"}}}`},
			func(w *world, g *v1alpha1.Gate) {
				w.ExpectHeld(inGit(w.Namespace, "apps", nil), g)
			},
		},
		"a user suspends while the gate closes": {
			false, "apply Kustomization", []string{`{"spec":{"suspend":true}}`},
			func(w *world, _ *v1alpha1.Gate) {
				w.Expect(inGit(w.Namespace, "apps", nil), userSuspended)
			},
		},
		"a user takes over while the gate opens, before the condition is written": {
			true, "patch-status Kustomization", []string{`{"spec":{"suspend":null}}`, `{"spec":{"suspend":true}}`},
			func(w *world, _ *v1alpha1.Gate) {
				if got := w.Suspension(inGit(w.Namespace, "apps", nil)); got.Suspend != true || got.HeldBy != "" {
					w.Errorf("got %+v, want it to stay suspended by the user", got)
				}
			},
		},
		"a user takes over while the gate opens, after the condition is written": {
			true, "apply Kustomization", []string{`{"spec":{"suspend":null}}`, `{"spec":{"suspend":true}}`},
			func(w *world, _ *v1alpha1.Gate) {
				if got := w.Suspension(inGit(w.Namespace, "apps", nil)); got.Suspend != true || got.HeldBy != "" {
					w.Errorf("got %+v, want it to stay suspended by the user", got)
				}
			},
		},
		"a user resumes between the hold and the condition": {
			false, "patch-status Kustomization", []string{`{"spec":{"suspend":null}}`},
			func(w *world, g *v1alpha1.Gate) {
				w.Reconcile(g)
				w.ExpectHeld(inGit(w.Namespace, "apps", nil), g)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			if tc.opens {
				w.Reconcile(g)
				w.ExpectHeld(app, g)
				w.Open(g, start)
			}
			w.Writes.Before = once(tc.at, func() error {
				for _, patch := range tc.patches {
					if err := w.Flux(app, patch); err != nil {
						return err
					}
				}
				return nil
			})
			w.Reconcile(g)
			tc.expect(w, g)
		})
	}
}

func TestConcurrentConditionOfFluxIsKept(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	for i, at := range []string{"closing", "opening"} {
		w.Writes.Before = once("patch-status Kustomization", func() error {
			fresh := w.Reload(inGit(w.Namespace, "apps", nil))
			fresh.SetConditions(append(fresh.GetConditions(), metav1.Condition{
				Type: fmt.Sprintf("Flux%d", i), Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now(),
			}))
			return cluster.Client.Status().Update(w.Context(), &fresh.Unstructured)
		})
		w.Reconcile(g)
		w.Reload(app)
		if got := len(app.GetConditions()); got != i+2 {
			t.Errorf("%s: %d conditions, want Approved and %d of Flux: %v", at, got, i+1, app.GetConditions())
		}
		w.Open(g, start)
	}
	w.ExpectReleased(app, g)
}

func TestOtherClosingGateKeepsItsHold(t *testing.T) {
	for _, at := range []string{"patch-status Kustomization", "apply Kustomization"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g, other := w.ClosedGate("production", named("apps")), w.Gate("other", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")}})
			w.Reconcile(g)
			w.Reconcile(other)
			w.Open(g, start)
			w.Writes.Before = once(at, func() error {
				w.Close(other, start)
				return hold(w.Context(), app, g, other)
			})
			w.Reconcile(g)
			w.Reconcile(other)
			w.ExpectHeld(app, other)
		})
	}
}
