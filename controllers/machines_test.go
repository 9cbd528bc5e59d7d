package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

func TestAFailureStopsTheBatchUntilTheGateOpensAnew(t *testing.T) {
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
				if round == 1 { // the other way to begin anew
					w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Machines.TTL = "2y" })
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
	strays := func(w *world, g *v1alpha1.Gate) { w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Targets = nil }) }
	closes := func(w *world, g *v1alpha1.Gate) { w.close(g, w.clock.Now()) }
	deletes := func(w *world, g *v1alpha1.Gate) { w.must(cluster.Client.Delete(w.ctx, g)) }
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

func TestARequestOfSomebodyElseIsNotTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs, ours := w.machine("a", 2*days), w.machine("b", 3*days)
	w.note("kubectl-annotate", theirs, map[string]any{target.RefreshRequestAnnotation: "90d"})
	g := w.fleetGate("nights", "opened")
	keep := func(when string) {
		t.Helper()
		if request, recorded := w.asked(theirs); request != "90d" || recorded {
			t.Errorf("%s: got %q, recorded %t", when, request, recorded)
		}
	}
	w.reconcile(g)
	keep("at first")
	w.expectAsked([]*target.Object{ours})
	w.note("manager", theirs, map[string]any{target.RefreshStatusAnnotation: "failed"})
	w.in(2 * time.Hour)
	w.reconcile(g)
	keep("after it failed")
	w.expectAsked([]*target.Object{ours})
	equal(t, failuresOf(g), []string{"Machine/a RefreshCertsFailed"})
	w.close(g, w.clock.Now())
	w.reconcile(g)
	keep("once the gate is closed")
	w.open(g, w.clock.Now().Add(time.Second))
	w.in(3 * time.Hour)
	w.provider(theirs, works)
	w.provider(theirs, works)
	w.reconcile(g)
	w.expectAsked([]*target.Object{theirs, ours}, "b")

	// Somebody who changes our request takes it over.
	w.note("kubectl-annotate", ours, map[string]any{target.RefreshRequestAnnotation: "5y"})
	w.reconcile(g)
	if request, recorded := w.asked(ours); request != "5y" || recorded {
		t.Errorf("got %q, recorded %t", request, recorded)
	}
	must(t, cluster.Client.Delete(w.ctx, g))
	w.reconcile(g)
	if request, _ := w.asked(ours); request != "5y" {
		t.Errorf("got %q", request)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryGateOfAMachineHasToBeOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, free := w.machine("a", 2*days), w.machine("b", 3*days)
	both := []*target.Object{m, free}
	w.note("kubectl-annotate", m, map[string]any{v1alpha1.GatesAnnotation: "approval"})
	g := w.fleetGate("nights", "opened")
	w.reconcile(g)
	w.expectAsked(both, "b") // the gate that the other names does not exist
	w.provider(free, works)
	w.provider(free, works)
	w.reconcile(g)
	w.expectAsked(both)

	approval := w.gate("approval", v1alpha1.GateSpec{Default: "closed"})
	w.reconcile(approval)
	w.reconcile(g)
	w.expectAsked(both)
	w.expectFleet(approval, "none")
	w.open(approval, start)
	w.reconcile(approval)
	w.reconcile(g)
	w.expectAsked(both, "a")

	w.close(approval, start.Add(time.Second))
	w.in(time.Second)
	w.reconcile(approval)
	w.expectQuiet(m)
	w.reconcile(g)
	w.expectAsked(both)

	w.in(days) // the margin of both
	if result := w.reconcile(g); result.RequeueAfter > days {
		t.Errorf("requeue after %s", result.RequeueAfter)
	}
	w.expectAsked(both, "a")
	w.reconcile(approval)
	w.expectAsked(both, "a")
}

func TestAStrictGateIsNotBypassedByAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", time.Hour)
	strict := w.fleetGate("strict", "closed", func(s *v1alpha1.GateSpec) { s.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })
	other, opened := w.fleetGate("other", "closed"), w.fleetGate("opened", "opened")
	for _, g := range []*v1alpha1.Gate{strict, other, opened, strict} {
		w.reconcile(g)
		w.expectQuiet(m)
	}
}

func TestWhatIsNotToBeRefreshed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy := w.machine("busy", days)
	w.note("manager", busy, map[string]any{target.RefreshStatusAnnotation: "in-progress"})
	broken := w.machine("broken", days)
	w.note("manager", broken, map[string]any{target.CertificatesExpiryAnnotation: "tomorrow"})
	fresh := w.machine("fresh", days)
	w.note("manager", fresh, map[string]any{target.CertificatesExpiryAnnotation: nil})
	leaving := w.machine("leaving", days)
	leaving.SetFinalizers([]string{"test/keep"})
	w.must(cluster.Client.Update(w.ctx, &leaving.Unstructured))
	w.must(cluster.Client.Delete(w.ctx, &leaving.Unstructured))
	copied := w.machine("copied", 90*days)
	record := refresh.Record{Gate: w.namespace + "/nights", RequestedAt: start.Add(-days), Expiry: start}
	w.note("velero", copied, map[string]any{v1alpha1.RefreshAnnotation: record.String(), target.RefreshStatusAnnotation: "failed"})

	g := w.fleetGate("nights", "opened")
	w.reconcile(g)
	for _, m := range []*target.Object{busy, broken, fresh, leaving, copied} {
		if request, _ := w.asked(m); request != "" {
			t.Errorf("%s is asked", m.GetName())
		}
	}
	w.expectFleet(g, "due 1")
	equal(t, failuresOf(g), []string{"Machine/broken RefreshCertsFailed"})
	w.provider(busy, works) // nobody asks any more
	w.reconcile(g)
	w.expectAsked([]*target.Object{busy}, "busy")
}

func TestAGateThatDoesNotSayHowRefreshesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", -days)
	g := w.fleetGate("nights", "opened", func(s *v1alpha1.GateSpec) { s.Machines = nil })
	w.reconcile(g)
	w.expectQuiet(m)
	w.expectFleet(g, "none")
	equal(t, g.Status.Targets.Total, int64(1))
}

// A cache that does not have our last write yet must not let a second one begin.
func TestACacheThatIsBehindDoesNotBeginASecondOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.machine("a", 3*days)
	g := w.fleetGate("nights", "opened")
	stale := &staleTargets{TargetReader: w.Targets}
	w.Targets = stale
	w.reconcile(g)
	w.expectAsked([]*target.Object{first}, "a")
	urgent := w.machine("b", 2*days)
	stale.first = true
	w.reconcile(g)
	w.expectAsked([]*target.Object{first, urgent}, "a")
}

// staleTargets shows Machines as they were before anybody asked for anything.
type staleTargets struct {
	TargetReader
	first bool
}

func (s *staleTargets) Select(ctx context.Context, adapter target.Adapter, namespace string, ref v1alpha1.TargetReference) ([]*target.Object, error) {
	all, err := s.TargetReader.Select(ctx, adapter, namespace, ref)
	for _, obj := range all {
		if s.first {
			annotations := obj.GetAnnotations()
			delete(annotations, target.RefreshRequestAnnotation)
			delete(annotations, v1alpha1.RefreshAnnotation)
			obj.SetAnnotations(annotations)
		}
	}
	return all, err
}

func (s *staleTargets) HeldBy(ctx context.Context, gate string) ([]*target.Object, error) {
	if s.first {
		return nil, nil
	}
	return s.TargetReader.HeldBy(ctx, gate)
}

func TestARequestWithoutItsRecordIsWithdrawnInNobodysName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", days)
	g := w.fleetGate("nights", "opened")
	w.reconcile(g)
	w.note("kubectl-edit", m, map[string]any{v1alpha1.RefreshAnnotation: nil})
	w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Targets = nil })
	w.reconcile(g)
	equal(t, holders(&trimmed(w.reload(m)).Unstructured), []string{w.namespace + "/"})
	if _, err := w.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace}}); err != nil {
		t.Error(err)
	}
	w.expectQuiet(m)
}

func trimmed(obj *target.Object) *target.Object {
	target.Trim(&obj.Unstructured, us)
	return obj
}

func TestAMachineThatIsReplacedWhileItIsWrittenIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.machine("a", days)
	g := w.fleetGate("nights", "opened")
	w.writes.before = once("apply Machine", func() error {
		if err := cluster.Client.Delete(w.ctx, &m.Unstructured); err != nil {
			return err
		}
		m = w.machine("a", 90*days)
		return nil
	})
	w.reconcile(g)
	w.expectQuiet(m)
	w.reconcile(g)
	w.expectFleet(g, "due 0")
}
