package controllers

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// round is a step of a refresh: what happens before a reconciliation, and what is
// expected after it, or after those that mend a crash in it.
type round struct {
	before func(*world, *v1alpha1.Gate, *target.Object)
	asked  []string
	status string
}

var rounds = map[string]round{
	"begin": {func(w *world, g *v1alpha1.Gate, _ *target.Object) { w.open(g, w.clock.Now()) }, []string{"a"}, "due 2, refreshing a"},
	"begin after a failure long ago": {func(w *world, g *v1alpha1.Gate, m *target.Object) {
		w.note("manager", m, map[string]any{target.RefreshStatusAnnotation: "failed"})
		w.open(g, w.clock.Now())
	}, []string{"a"}, "due 2, refreshing a"},
	"done": {func(w *world, g *v1alpha1.Gate, m *target.Object) {
		w.open(g, w.clock.Now())
		w.reconcile(g)
		w.provider(m, works)
		w.provider(m, works)
	}, []string{"b"}, "due 1, refreshing b"},
	"failed": {func(w *world, g *v1alpha1.Gate, m *target.Object) {
		w.open(g, w.clock.Now())
		w.reconcile(g)
		w.provider(m, works)
		w.provider(m, fails)
	}, nil, "due 2, stopped by a"},
	"failed after a change of the spec": {func(w *world, g *v1alpha1.Gate, m *target.Object) {
		w.open(g, w.clock.Now())
		w.reconcile(g)
		w.provider(m, failsAtOnce)
		w.Edit(g, func() { g.Spec.Machines.TTL = "2y" })
	}, nil, "due 2, stopped by a"},
	"timed out": {func(w *world, g *v1alpha1.Gate, m *target.Object) {
		w.open(g, w.clock.Now())
		w.reconcile(g)
		w.provider(m, stuck)
		w.in(2 * time.Hour)
	}, nil, "due 2, stopped by a"},
	"withdrawn": {func(w *world, g *v1alpha1.Gate, _ *target.Object) {
		w.open(g, w.clock.Now())
		w.reconcile(g)
		w.close(g, w.in(time.Minute))
	}, nil, "due 2"},
}

// fleetOfTwo is a closed Gate and its Machines, and what happens before a round.
func fleetOfTwo(t *testing.T, r round) (*world, *v1alpha1.Gate, []*target.Object) {
	t.Helper()
	w := newWorld(t)
	both := []*target.Object{w.machine("a", 2*days), w.machine("b", 3*days)}
	g := w.fleetGate("nights", "closed")
	w.reconcile(g)
	r.before(w, g, both[0])
	return w, g, both
}

// The same is asked after a crash as without one, and a failure is
// never lost, nor is another refresh begun after it.
func TestACrashAfterAnyWriteToAMachineIsMended(t *testing.T) {
	for name, r := range rounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range enough {
				w, g, both := fleetOfTwo(t, r)
				w.writes.before = crashing(n)
				_, err := w.try(g)
				w.writes.heal()
				w.reconcile(g)
				w.expectAsked(both, r.asked...)
				w.expectFleet(g, r.status)
				if t.Failed() {
					t.Fatalf("after a crash at write %d: %v", n, err)
				}
				if err == nil {
					return
				}
			}
			t.Errorf("more than %d writes", enough)
		})
	}
}

func TestALostAnswerOfAMachineIsMended(t *testing.T) {
	for name, r := range rounds {
		for _, at := range []string{"apply Machine", "patch Machine", "patch-status Gate"} {
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				w, g, both := fleetOfTwo(t, r)
				w.writes.after = once(at, func() error { return errBroken })
				_, _ = w.try(g)
				w.writes.heal()
				w.reconcile(g)
				w.expectAsked(both, r.asked...)
				w.expectFleet(g, r.status)
			})
		}
	}
}

// A failure is in the status of the Gate before the Machine forgets it.
func TestAFailureIsKeptFirst(t *testing.T) {
	t.Parallel()
	w, g, both := fleetOfTwo(t, rounds["failed"])
	seen := false
	w.writes.before = once("apply Machine", func() error {
		seen = true
		latest := &v1alpha1.Gate{}
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), latest))
		w.expectFleet(latest, "due 2, refreshing a, stopped by a")
		return nil
	})
	w.reconcile(g)
	if !seen {
		t.Error("nothing was written")
	}
	w.expectAsked(both)

	w, g, both = fleetOfTwo(t, rounds["failed"])
	w.writes.before = failing("patch-status Gate")
	if _, err := w.try(g); err == nil {
		t.Error("no error")
	}
	w.expectAsked(both, "a")
}

// Somebody writes the Machine between our reading and our writing.
func TestAConcurrentChangeOfAMachineIsDecidedOnAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		round  string
		change map[string]any
		expect func(*world, *v1alpha1.Gate, []*target.Object)
	}{
		"a label while it is begun": {"begin", map[string]any{"x": "y"}, func(w *world, _ *v1alpha1.Gate, both []*target.Object) {
			w.expectAsked(both, "a")
		}},
		"a person asks first": {"begin", map[string]any{target.RefreshRequestAnnotation: "90d"}, func(w *world, g *v1alpha1.Gate, both []*target.Object) {
			if request, recorded := w.asked(both[0]); request != "90d" || recorded {
				w.Errorf("got %q, recorded %t", request, recorded)
			}
			w.expectFleet(g, "due 2")
		}},
		"the provider renews by itself": {"begin", map[string]any{target.CertificatesExpiryAnnotation: "2030-01-01T00:00:00Z"}, func(w *world, _ *v1alpha1.Gate, both []*target.Object) {
			w.expectAsked(both, "b")
		}},
		"the provider begins while it is withdrawn": {"withdrawn", map[string]any{target.RefreshStatusAnnotation: "in-progress"}, func(w *world, g *v1alpha1.Gate, both []*target.Object) {
			w.expectAsked(both, "a")
			w.expectFleet(g, "due 2, refreshing a")
		}},
		"the provider is done while it is withdrawn": {"withdrawn", map[string]any{
			target.RefreshStatusAnnotation: "done", target.RefreshRequestAnnotation: nil, target.CertificatesExpiryAnnotation: "2030-01-01T00:00:00Z",
		}, func(w *world, g *v1alpha1.Gate, both []*target.Object) {
			w.expectQuiet(both[0])
			w.expectFleet(g, "due 1")
			if events := w.events.take("RefreshCertsDone"); len(events) != 1 {
				w.Errorf("events %q", events)
			}
		}},
		"a person takes over while it is withdrawn": {"withdrawn", map[string]any{target.RefreshRequestAnnotation: "2y"}, func(w *world, _ *v1alpha1.Gate, both []*target.Object) {
			if request, recorded := w.asked(both[0]); request != "2y" || recorded {
				w.Errorf("got %q, recorded %t", request, recorded)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g, both := fleetOfTwo(t, rounds[tc.round])
			w.events.take("")
			w.writes.before = once("apply Machine/a", func() error { return w.tryNote("somebody", both[0], tc.change) })
			w.reconcile(g)
			tc.expect(w, g, both)
		})
	}
}

func TestAMachineThatCannotBeWrittenDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	w, g, both := fleetOfTwo(t, rounds["begin"])
	w.writes.before = func(write string) error {
		if strings.HasPrefix(write, "apply Machine/a") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "a", errBroken)
		}
		return nil
	}
	if _, err := w.try(g); err == nil {
		t.Error("no error")
	}
	w.expectAsked(both, "b")
	equal(t, failuresOf(g), []string{"Machine/a WriteFailed"})
}

func TestMachinesOnTheRealManager(t *testing.T) {
	startManager(t, cluster)
	w := newWorld(t)
	soonest := time.Until(start) + 2*days
	control, worker := w.machine("control", -soonest+40*days, target.ControlPlaneLabel), w.machine("worker", -soonest+2*days)
	for _, m := range []*target.Object{control, worker} {
		w.note("manager", m, map[string]any{target.CertificatesExpiryAnnotation: time.Now().Add(2 * days).Format(time.RFC3339)})
	}
	g := w.fleetGate("nights", "closed", func(s *v1alpha1.GateSpec) { s.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })
	soonAsked := func(m *target.Object, want string) {
		t.Helper()
		soon(t, m.GetName()+" is asked for "+want, func() bool { request, _ := w.asked(m); return request == want })
	}
	w.clock.SetTime(time.Now())
	w.soonStatus(g, "both are held", func(g *v1alpha1.Gate) bool { return g.Status.Targets != nil && g.Status.Targets.Held == 2 })
	w.open(g, time.Now())
	soonAsked(control, "1y")
	w.expectAsked([]*target.Object{worker})
	w.provider(control, works)
	w.provider(control, works)
	soonAsked(worker, "1y")
	w.expectQuiet(control)
	w.provider(worker, fails)
	w.provider(worker, fails)
	soonAsked(worker, "")
	w.soonStatus(g, "the failure is told", func(g *v1alpha1.Gate) bool { return fleetStatus(g) == "due 1, stopped by worker" })
	w.close(g, time.Now())
	w.soonStatus(g, "it is closed", func(g *v1alpha1.Gate) bool { return g.Status.Targets.Held == 1 })
	w.open(g, time.Now().Add(time.Second))
	soonAsked(worker, "1y")
	w.Must(cluster.Client.Delete(w.Context(), g))
	soonAsked(worker, "")
	w.expectQuiet(worker)
}
