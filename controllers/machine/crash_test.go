package machine

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// round is a step of a refresh: a change before the passes, and the state that is expected after them, even if they crash.
type round struct {
	before            func(*world, *v1alpha1.MachineCertificateRefresh, machines)
	requested         []string
	status, condition string
}

var rounds = map[string]round{
	"begin": {func(w *world, _ *v1alpha1.MachineCertificateRefresh, _ machines) { w.gate("nights", opened) }, []string{"a"}, "due 2, refreshing a", ready},
	"begin after a failure long ago": {func(w *world, _ *v1alpha1.MachineCertificateRefresh, both machines) {
		w.annotateAs("manager", both[0], map[string]any{statusAnnotation: "failed"})
		w.gate("nights", opened)
	}, []string{"a"}, "due 2, refreshing a", ready},
	"done":   {ends(works, works), []string{"b"}, "due 1, refreshing b", ready},
	"failed": {ends(works, fails), nil, "due 2, stopped by a", stopped},
	"failed after a change of the spec": {func(w *world, obj *v1alpha1.MachineCertificateRefresh, both machines) {
		ends(failsAtOnce)(w, obj, both)
		w.Edit(obj, func() { obj.Spec.TTL = "2y" })
	}, nil, "due 2, stopped by a", stopped},
	"timed out": {func(w *world, obj *v1alpha1.MachineCertificateRefresh, both machines) {
		ends(stuck)(w, obj, both)
		w.in(2 * time.Hour)
	}, nil, "due 2, stopped by a", stopped},
	"withdrawn": {func(w *world, obj *v1alpha1.MachineCertificateRefresh, both machines) {
		ends()(w, obj, both)
		w.gate("nights", closed)
	}, nil, "due 2", ready},
}

// ends begins a refresh and makes the provider take some steps.
func ends(steps ...string) func(*world, *v1alpha1.MachineCertificateRefresh, machines) {
	return func(w *world, _ *v1alpha1.MachineCertificateRefresh, both machines) {
		w.gate("nights", opened)
		w.reconcile()
		for _, step := range steps {
			w.provider(both[0], step)
		}
	}
}

// fleetOfTwo returns a world with two Machines and a closed Gate, after the change before a round.
func fleetOfTwo(t *testing.T, r round) (*world, *v1alpha1.MachineCertificateRefresh, machines) {
	t.Helper()
	w := newWorld(t)
	both := machines{w.machine("a", 2*day), w.machine("b", 3*day)}
	w.gate("nights", closed)
	obj := w.refreshes("nodes")
	w.reconcile()
	r.before(w, obj, both)
	w.told("")
	w.take("")
	return w, obj, both
}

// A failure is never lost, nothing is requested twice, and no other refresh begins after a failure.
func TestCrashAtAnyWriteIsRepaired(t *testing.T) {
	for name, r := range rounds {
		for how, after := range map[string]bool{"before": false, "after": true} {
			t.Run(name+", "+how+" the write", func(t *testing.T) {
				t.Parallel()
				for n := range 10 {
					w, obj, both := fleetOfTwo(t, r)
					written := 0
					crash := func(string) error {
						if written++; written > n {
							return errBroken
						}
						return nil
					}
					if w.before = crash; after {
						w.before, w.after = nil, crash
					}
					_, err := w.try()
					w.before, w.after = nil, nil
					w.reconcile()
					w.expectRequested(both, r.requested...)
					w.expectStatus(obj, r.status, r.condition)
					if t.Failed() {
						t.Fatalf("after a crash at write %d: %v", n, err)
					}
					if err == nil {
						return
					}
				}
				t.Error("more than 10 writes")
			})
		}
	}
}

// Another client writes the Machine between the read and the write.
func TestConcurrentChangeOfMachineIsReconciledAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		round  string
		change map[string]any
		expect func(*world, *v1alpha1.MachineCertificateRefresh, machines)
	}{
		"a label while it is begun": {"begin", map[string]any{"x": "y"}, func(w *world, _ *v1alpha1.MachineCertificateRefresh, both machines) {
			w.expectRequested(both, "a")
		}},
		"a person requests first": {"begin", map[string]any{requestAnnotation: "90d"}, func(w *world, obj *v1alpha1.MachineCertificateRefresh, both machines) {
			if request, recorded := w.requested(both[0]); request != "90d" || recorded {
				w.Errorf("got %q, recorded %t", request, recorded)
			}
			w.expectStatus(obj, "due 2", ready)
		}},
		"the provider renews by itself": {"begin", map[string]any{expiryAnnotation: "2030-01-01T00:00:00Z"}, func(w *world, _ *v1alpha1.MachineCertificateRefresh, both machines) {
			w.expectRequested(both, "b")
		}},
		"the provider begins while it is withdrawn": {"withdrawn", map[string]any{statusAnnotation: "in-progress"}, func(w *world, obj *v1alpha1.MachineCertificateRefresh, both machines) {
			w.expectRequested(both, "a")
			w.expectStatus(obj, "due 2, refreshing a", ready)
		}},
		"the provider is done while it is withdrawn": {"withdrawn", map[string]any{
			statusAnnotation: "done", requestAnnotation: nil, expiryAnnotation: "2030-01-01T00:00:00Z",
		}, func(w *world, obj *v1alpha1.MachineCertificateRefresh, both machines) {
			w.expectQuiet(both[0])
			w.expectStatus(obj, "due 1", ready)
			if events := w.told("RefreshCertsDone"); len(events) != 1 {
				w.Errorf("events %q", events)
			}
		}},
		"a person takes over while it is withdrawn": {"withdrawn", map[string]any{requestAnnotation: "2y"}, func(w *world, _ *v1alpha1.MachineCertificateRefresh, both machines) {
			if request, recorded := w.requested(both[0]); request != "2y" || recorded {
				w.Errorf("got %q, recorded %t", request, recorded)
			}
		}},
		"it is deleted while it is begun": {"begin", nil, func(w *world, obj *v1alpha1.MachineCertificateRefresh, both machines) {
			w.expectRequested(both[1:], "b")
			w.expectStatus(obj, "due 1, refreshing b", ready)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, obj, both := fleetOfTwo(t, rounds[tc.round])
			w.before = once("apply Machine/a", func() error {
				if tc.change != nil {
					return w.tryAnnotate("other", "a", tc.change)
				}
				return cluster.Client.Delete(w.Context(), both[0])
			})
			w.reconcile()
			tc.expect(w, obj, both)
		})
	}
	t.Run("it is replaced while it is begun", func(t *testing.T) {
		t.Parallel()
		w, obj, both := fleetOfTwo(t, rounds["begin"])
		w.before = once("apply Machine/a", func() error {
			err := cluster.Client.Delete(w.Context(), both[0])
			both[0] = w.machine("a", 90*day)
			return err
		})
		w.reconcile()
		w.expectQuiet(both[0])
		w.expectStatus(obj, "due 1, refreshing b", ready)
	})
}

func TestUnwritableMachineStopsNoOther(t *testing.T) {
	t.Parallel()
	w, obj, both := fleetOfTwo(t, rounds["begin"])
	w.before = func(write string) error {
		if strings.HasPrefix(write, "apply Machine/a") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "a", errBroken)
		}
		return nil
	}
	if _, err := w.try(); err == nil {
		t.Error("no error")
	}
	w.expectRequested(both, "b")
	w.expectStatus(obj, "due 2, refreshing b", v1alpha1.WriteFailedReason)
}

// A pass ends even if a webhook undoes each write.
func TestMutatingWebhookThatRevertsWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		round string
		undo  map[string]any
	}{
		"a request that never stays": {"begin", map[string]any{requestAnnotation: nil, v1alpha1.RefreshAnnotation: nil}},
		"a request that stays":       {"withdrawn", map[string]any{requestAnnotation: "1y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _ := fleetOfTwo(t, rounds[tc.round])
			w.after = func(write string) error {
				if write != "apply Machine/a" {
					return nil
				}
				return w.tryAnnotate("webhook", "a", tc.undo)
			}
			if _, err := w.Reconcile(w.Context(), request(w)); err != nil {
				t.Error(err)
			}
			if writes := w.take("apply Machine"); len(writes) != 1 {
				t.Errorf("writes %q", writes)
			}
		})
	}
}
