package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/refresh"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestMachinesAreRefreshedOneByOneWhileTheGateIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.machine("worker-1", 3*days), w.machine("worker-2", 4*days)
	control := w.machine("control", 20*days, target.ControlPlaneLabel)
	late := w.machine("late", 90*days)
	all := []*target.Object{first, second, control, late}
	g := w.fleetGate("nights", "closed")

	if result := w.reconcile(g); result.RequeueAfter != days {
		t.Errorf("requeue after %s", result.RequeueAfter)
	}
	w.expectAsked(all)
	w.expectFleet(g, "due 3")
	equal(t, *g.Status.Targets, v1alpha1.TargetCounts{Total: 4, Held: 3})

	w.open(g, start)
	for i, m := range []*target.Object{control, first, second} {
		w.events.take("")
		result := w.reconcile(g)
		w.expectAsked(all, m.GetName())
		if request, _ := w.asked(m); request != "1y" {
			t.Errorf("%s is asked for %q", m.GetName(), request)
		}
		if got := owners(m, target.RefreshRequestAnnotation); len(got) != 1 || got[0] != "gating-controller Apply" {
			t.Errorf("the request is owned by %v", got)
		}
		equal(t, *refresh.ParseRecord(m.GetAnnotations()[v1alpha1.RefreshAnnotation]),
			refresh.Record{Gate: key(g), RequestedAt: w.clock.Now(), Expiry: start.Add(w.expiresIn(m))})
		w.expectFleet(g, "due "+string("321"[i])+", refreshing "+m.GetName())
		if result.RequeueAfter != time.Hour {
			t.Errorf("%s: requeue after %s, want the timeout", m.GetName(), result.RequeueAfter)
		}
		if events := w.events.take("Machine/" + m.GetName() + " RefreshCertsInProgress"); len(events) != 1 {
			t.Errorf("events %q", events)
		}
		w.writes.take("")
		w.provider(m, works)
		w.reconcile(g)
		if writes := w.writes.take("Machine"); len(writes) > 0 {
			t.Errorf("in progress: %q", writes)
		}
		w.expectAsked(all, m.GetName())
		w.provider(m, works)
		w.in(time.Duration(i+1) * 10 * time.Minute)
	}
	w.events.take("")
	w.reconcile(g)
	if events := w.events.take("Normal Machine/worker-2 RefreshCertsDone"); len(events) != 1 || !strings.Contains(events[0], "expire at 2027-11-23T12:20:00Z") {
		t.Errorf("events %q", events)
	}
	w.expectAsked(all)
	w.expectFleet(g, "due 0")
	for _, m := range all {
		w.expectQuiet(m)
	}
	equal(t, *g.Status.Targets, v1alpha1.TargetCounts{Total: 4})
	if !conditions.IsReady(g) || len(g.Status.Failures) > 0 || w.expiresIn(late) != 90*days {
		t.Errorf("conditions %v, failures %v", g.Status.Conditions, g.Status.Failures)
	}
}

func TestAFailureStopsTheBatchUntilTheGateOpensAgain(t *testing.T) {
	for fault, tc := range map[string]struct {
		steps   int
		message string
	}{
		stuck:         {1, "the status is \"in-progress\""},
		fails:         {2, "the provider reports that the refresh failed"},
		failsAtOnce:   {1, "the provider reports that the refresh failed"},
		neverAdvances: {2, "the request is gone, the status is \"done\""},
		ignores:       {1, "the request is still there, there is no status"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			broken, next := w.machine("a", 2*days), w.machine("b", 3*days)
			both := []*target.Object{broken, next}
			g := w.fleetGate("nights", "opened")
			for round := range 3 {
				w.reconcile(g)
				w.expectAsked(both, "a")
				w.events.take("")
				for range tc.steps {
					w.provider(broken, fault)
				}
				timeout := time.Duration(round)*days + time.Hour
				if tc.message[0:6] != "the pr" {
					w.in(timeout - time.Second)
					if result := w.reconcile(g); result.RequeueAfter != time.Second {
						t.Errorf("just before the timeout: requeue after %s", result.RequeueAfter)
					}
					w.expectFleet(g, "due 2, refreshing a")
				}
				w.in(timeout)
				w.reconcile(g)
				w.expectAsked(both)
				w.expectFleet(g, "due 2, stopped by a")
				equal(t, failuresOf(g), []string{"Machine/a RefreshCertsFailed"})
				if events := w.events.take("Warning Machine/a RefreshCertsFailed"); len(events) != 1 || !strings.Contains(events[0], tc.message) {
					t.Errorf("events %q, want %q", events, tc.message)
				}
				if conditions.IsReady(g) {
					t.Error("the gate is ready")
				}
				w.provider(broken, fault) // takes note of the end

				w.in(timeout + time.Hour)
				w.reconcile(g)
				w.expectAsked(both)
				w.expectFleet(g, "due 2, stopped by a")
				if round == 1 { // the other way to begin again
					w.Edit(g, func() { g.Spec.Machines.TTL = "2y" })
				} else {
					w.close(g, w.clock.Now())
					w.reconcile(g)
					w.expectFleet(g, "due 2, stopped by a")
					w.open(g, w.clock.Now().Add(time.Second))
				}
				w.in(time.Duration(round+1) * days)
			}
			// In the end somebody mends the provider.
			w.reconcile(g)
			w.expectFleet(g, "due 2, refreshing a")
			for _, m := range both {
				w.provider(m, works)
				w.provider(m, works)
				w.reconcile(g)
			}
			w.expectFleet(g, "due 0")
			w.expectQuiet(broken)
			w.expectQuiet(next)
		})
	}
}

func TestAGateThatClosesWithdrawsWhatTheProviderHasNotBegun(t *testing.T) {
	strays := func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.Targets = nil }) }
	closes := func(w *world, g *v1alpha1.Gate) { w.close(g, w.clock.Now()) }
	deletes := func(w *world, g *v1alpha1.Gate) { w.Must(cluster.Client.Delete(w.Context(), g)) }
	for name, do := range map[string]func(*world, *v1alpha1.Gate){
		"closes": closes, "no longer governs": strays, "is deleted": deletes,
	} {
		t.Run(name+", pending", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 5*days)
			g := w.fleetGate("nights", "opened")
			w.reconcile(g)
			w.events.take("")
			do(w, g)
			w.reconcile(g)
			w.expectQuiet(m)
			if events := w.events.take("RefreshCerts"); len(events) > 0 {
				t.Errorf("events %q", events)
			}
		})
		t.Run(name+", in progress", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 5*days)
			g := w.fleetGate("nights", "opened")
			w.reconcile(g)
			w.provider(m, works)
			do(w, g)
			w.reconcile(g)
			w.expectAsked([]*target.Object{m}, "a")
			w.provider(m, works)
			w.in(time.Minute)
			w.events.take("")
			w.reconcile(g)
			w.expectQuiet(m)
			if events := w.events.take("RefreshCertsDone"); len(events) != 1 {
				t.Errorf("events %q", events)
			}
		})
		t.Run(name+", stuck in progress", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 5*days)
			g := w.fleetGate("nights", "opened")
			w.reconcile(g)
			w.provider(m, works)
			do(w, g)
			w.reconcile(g)
			w.in(59 * time.Minute)
			if result := w.reconcile(g); result.RequeueAfter != time.Minute {
				t.Errorf("requeue after %s", result.RequeueAfter)
			}
			w.expectAsked([]*target.Object{m}, "a")
			w.in(time.Hour)
			w.events.take("")
			w.reconcile(g)
			w.expectQuiet(m)
			if events := w.events.take("RefreshCertsFailed"); len(events) != 1 {
				t.Errorf("events %q", events)
			}
		})
	}
}

func TestAClosedGateLetsCertificatesThatAreAboutToExpireBeRefreshed(t *testing.T) {
	certificates := func(policy v1alpha1.CertificatePolicy) func(*v1alpha1.GateSpec) {
		return func(s *v1alpha1.GateSpec) { s.Certificates = &policy }
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.GateSpec)
		margin time.Duration
	}{
		"by default a day before":        {func(*v1alpha1.GateSpec) {}, days},
		"as it says":                     {certificates(v1alpha1.CertificatePolicy{SafetyMargin: duration(time.Hour)}), time.Hour},
		"a sixth of the lifetime before": {func(s *v1alpha1.GateSpec) { s.Machines.TTL, s.Machines.Within = "3d", *duration(2 * days) }, 12 * time.Hour},
		"never if it is strict":          {certificates(v1alpha1.CertificatePolicy{Strict: true}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 30*time.Hour)
			g := w.fleetGate("nights", "closed", tc.change)
			w.in(30*time.Hour - tc.margin - time.Second)
			result := w.reconcile(g)
			w.expectAsked([]*target.Object{m})
			equal(t, g.Status.Targets.Held, int64(1))
			if tc.margin == 0 {
				w.in(31 * time.Hour)
				w.reconcile(g)
				w.expectAsked([]*target.Object{m})
				return
			}
			if result.RequeueAfter != time.Second {
				t.Errorf("requeue after %s, want the margin", result.RequeueAfter)
			}
			w.in(30*time.Hour - tc.margin)
			w.events.take("")
			w.reconcile(g)
			w.expectAsked([]*target.Object{m}, "a")
			equal(t, g.Status.Targets.Held, int64(0))
			if events := w.events.take("RefreshCertsInProgress"); len(events) != 1 || !strings.Contains(events[0], "although gate") {
				t.Errorf("events %q", events)
			}
		})
	}
}

func TestAMachineIsLookedAtWhenItBecomesDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", 30*days+time.Hour)
	g := w.fleetGate("nights", "opened")
	if result := w.reconcile(g); result.RequeueAfter != time.Hour {
		t.Errorf("requeue after %s", result.RequeueAfter)
	}
	w.expectQuiet(m)
	w.in(time.Hour)
	w.reconcile(g)
	w.expectAsked([]*target.Object{m}, "a")
}
