package machine

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/machinecerts"
)

type machines = []*metav1.PartialObjectMetadata

const (
	ready   = meta.SucceededReason
	stopped = v1alpha1.RefreshCertsFailedReason
)

func TestMachinesAreRefreshedOneByOneWhileGateIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.machine("worker-1", 3*day), w.machine("worker-2", 4*day)
	control, late := w.machine("control", 20*day, controlPlaneLabel), w.machine("late", 90*day)
	all := machines{first, second, control, late}
	w.gate("nights", closed)
	obj := w.refreshes("nodes")
	if again := w.reconcile(); again != pollInterval {
		t.Errorf("requeue after %s", again)
	}
	w.expectRequested(all)
	w.expectStatus(obj, "due 3", ready)
	if message := conditions.GetMessage(obj, meta.ReadyCondition); message != "3 Machines are due: 3 wait for Gate nights to open" {
		t.Errorf("message %q", message)
	}

	w.gate("nights", opened)
	for i, m := range (machines{control, first, second}) {
		w.told("")
		w.reconcile()
		w.expectRequested(all, m.Name)
		if request, _ := w.requested(m); request != "1y" || requestOn(m) != machinecerts.Ours {
			t.Errorf("%s has the request %q", m.Name, request)
		}
		record := recordOn(m)
		if record == nil || record.Refresh != client.ObjectKeyFromObject(obj).String() || !record.RequestedAt.Equal(w.clock.Now()) {
			t.Errorf("record %+v", record)
		}
		w.expectStatus(obj, "due "+string("321"[i])+", refreshing "+m.Name, ready)
		if events := w.told("RefreshCertsInProgress"); len(events) != 1 || !strings.Contains(events[0], "its Gates are open") {
			t.Errorf("events %q", events)
		}
		w.take("")
		w.provider(m, works)
		w.reconcile()
		if writes := w.take("Machine/"); len(writes) > 0 {
			t.Errorf("in progress: %q", writes)
		}
		w.provider(m, works)
		w.in(time.Duration(i+1) * 10 * time.Minute)
	}
	w.told("")
	if again := w.reconcile(); again != resyncInterval {
		t.Errorf("requeue after %s", again)
	}
	if events := w.told("Normal RefreshCertsDone"); len(events) != 1 || !strings.Contains(events[0], "expire at 2027-11-23T12:20:00Z") {
		t.Errorf("events %q", events)
	}
	w.expectStatus(obj, "due 0", ready)
	w.expectQuiet(all...)
}

func TestFailureStopsRefreshUntilChange(t *testing.T) {
	for fault, tc := range map[string]struct {
		steps   int
		message string
	}{
		stuck:         {1, "the status is \"in-progress\""},
		fails:         {2, "the provider reports that the refresh failed"},
		failsAtOnce:   {1, "the provider reports that the refresh failed"},
		neverAdvances: {2, "the request was removed, the status is \"done\""},
		ignores:       {1, "the request still exists, there is no status"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			broken, next := w.machine("a", 2*day), w.machine("b", 3*day)
			w.gate("nights", opened)
			obj := w.refreshes("nodes")
			for round, resume := range []func(){
				func() {
					w.gate("nights", closed)
					w.reconcile()
					w.expectStatus(obj, "due 2, stopped by a", stopped)
					w.gate("nights", opened)
				},
				func() { w.Edit(obj, func() { obj.Spec.TTL = "2y" }) },
				func() { w.Annotate(obj, meta.ReconcileRequestAnnotation, "now") },
			} {
				w.reconcile()
				w.expectRequested(machines{broken, next}, "a")
				for range tc.steps {
					w.provider(broken, fault)
				}
				timeout := time.Duration(4*round)*time.Hour + time.Hour
				if !strings.HasPrefix(tc.message, "the provider") {
					w.in(timeout - time.Second)
					if again := w.reconcile(); again != time.Second {
						t.Errorf("just before the timeout: requeue after %s", again)
					}
					w.expectStatus(obj, "due 2, refreshing a", ready)
				}
				w.in(timeout)
				w.told("")
				w.reconcile()
				w.expectRequested(machines{broken, next})
				w.expectStatus(obj, "due 2, stopped by a", stopped)
				if events := w.told("Warning RefreshCertsFailed"); len(events) != 1 || !strings.Contains(events[0], tc.message) {
					t.Errorf("events %q, want %q", events, tc.message)
				}
				w.provider(broken, fault) // the provider observes the end of the request
				w.in(timeout + time.Hour)
				w.reconcile()
				w.expectRequested(machines{broken, next})
				w.in(time.Duration(4*round)*time.Hour + 4*time.Hour)
				resume()
			}
			w.reconcile()
			w.expectStatus(obj, "due 2, refreshing a", ready)
			for _, m := range (machines{broken, next}) {
				w.provider(m, works)
				w.provider(m, works)
				w.reconcile()
			}
			w.expectStatus(obj, "due 0", ready)
			w.expectQuiet(broken, next)
		})
	}
}

func TestUnstartedRefreshIsWithdrawn(t *testing.T) {
	for name, do := range map[string]func(*world, *v1alpha1.MachineCertificateRefresh){
		"the gate closes": func(w *world, _ *v1alpha1.MachineCertificateRefresh) { w.gate("nights", closed) },
		"the gate is deleted": func(w *world, _ *v1alpha1.MachineCertificateRefresh) {
			w.Must(cluster.Client.Delete(w.Context(), w.ReadGate("nights")))
		},
		"the gate is suspended": func(w *world, _ *v1alpha1.MachineCertificateRefresh) {
			w.gate("nights", opened, func(g *v1alpha1.Gate) { g.Spec.Suspend = true })
		},
		"the machine is not selected": func(w *world, obj *v1alpha1.MachineCertificateRefresh) {
			w.Edit(obj, func() { obj.Spec.Selector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} })
		},
		"it is deleted": func(w *world, obj *v1alpha1.MachineCertificateRefresh) {
			w.Must(cluster.Client.Delete(w.Context(), obj))
		},
	} {
		begun := func(t *testing.T, working bool) (*world, *metav1.PartialObjectMetadata) {
			t.Helper()
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 5*day)
			w.gate("nights", opened)
			obj := w.refreshes("nodes")
			w.reconcile()
			if working {
				w.provider(m, works)
			}
			do(w, obj)
			w.told("")
			w.reconcile()
			return w, m
		}
		t.Run(name+", pending", func(t *testing.T) {
			w, m := begun(t, false)
			w.expectQuiet(m)
			if events := w.told("RefreshCerts"); len(events) > 0 {
				t.Errorf("events %q", events)
			}
		})
		t.Run(name+", in progress", func(t *testing.T) {
			w, m := begun(t, true)
			w.expectRequested(machines{m}, "a")
			w.provider(m, works)
			w.reconcile()
			w.expectQuiet(m)
			if events := w.told("RefreshCertsDone"); len(events) != 1 {
				t.Errorf("events %q", events)
			}
		})
		t.Run(name+", stuck in progress", func(t *testing.T) {
			w, m := begun(t, true)
			w.in(time.Hour - time.Second)
			if again := w.reconcile(); again != time.Second {
				t.Errorf("requeue after %s", again)
			}
			w.expectRequested(machines{m}, "a")
			w.in(time.Hour)
			w.reconcile()
			w.expectQuiet(m)
			if events := w.told("RefreshCertsFailed"); len(events) != 1 {
				t.Errorf("events %q", events)
			}
		})
	}
}

func TestRefreshWhileGateIsClosed(t *testing.T) {
	certificates := func(policy v1alpha1.CertificatePolicy) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) { g.Spec.Certificates = &policy }
	}
	short := func(s *v1alpha1.MachineCertificateRefreshSpec) {
		s.TTL, s.Within = "6d", v1alpha1.Duration{Duration: 3 * day}
	}
	for name, tc := range map[string]struct {
		gate   func(*v1alpha1.Gate)
		spec   func(*v1alpha1.MachineCertificateRefreshSpec)
		margin time.Duration
	}{
		"by default a day before":        {func(*v1alpha1.Gate) {}, func(*v1alpha1.MachineCertificateRefreshSpec) {}, day},
		"by its safety margin":           {certificates(v1alpha1.CertificatePolicy{SafetyMargin: v1alpha1.NewDuration(time.Hour)}), func(*v1alpha1.MachineCertificateRefreshSpec) {}, time.Hour},
		"a sixth of the lifetime before": {certificates(v1alpha1.CertificatePolicy{SafetyMargin: v1alpha1.NewDuration(28 * time.Hour)}), short, day},
		"never if it is strict":          {certificates(v1alpha1.CertificatePolicy{Strict: true}), func(*v1alpha1.MachineCertificateRefreshSpec) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", 30*time.Hour)
			w.gate("nights", closed, tc.gate)
			w.refreshes("nodes", tc.spec)
			w.in(30*time.Hour - tc.margin - time.Second)
			again := w.reconcile()
			w.expectRequested(machines{m})
			if tc.margin == 0 {
				w.in(31 * time.Hour)
				w.reconcile()
				w.expectRequested(machines{m})
				return
			}
			if again != time.Second {
				t.Errorf("requeue after %s, want the margin", again)
			}
			w.in(30*time.Hour - tc.margin)
			w.reconcile()
			w.expectRequested(machines{m}, "a")
			if events := w.told("RefreshCertsInProgress"); len(events) != 1 || !strings.Contains(events[0], "although Gate nights is closed") {
				t.Errorf("events %q", events)
			}
		})
	}
}

// A refresh begins only while all Gates are open, except shortly before the expiry if a Gate is closed and has a safety margin.
func TestRefreshBeginsOnlyWhileAllGatesAreOpen(t *testing.T) {
	for name, tc := range map[string]struct {
		gate   func(*world)
		reason string
	}{
		"closed": {func(w *world) {
			w.gate("other", closed, func(g *v1alpha1.Gate) { g.Spec.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })
		}, ready},
		"missing":       {func(*world) {}, v1alpha1.GateNotFoundReason},
		"suspended":     {func(w *world) { w.gate("other", opened, func(g *v1alpha1.Gate) { g.Spec.Suspend = true }) }, v1alpha1.GateNotReadyReason},
		"in mode Audit": {func(w *world) { w.gate("other", opened, func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }) }, v1alpha1.GateNotReadyReason},
		"invalid": {func(w *world) {
			w.gate("other", opened)
			g := w.ReadGate("other")
			before := g.DeepCopy()
			conditions.MarkTrue(g, v1alpha1.OpenedCondition, v1alpha1.InvalidSpecReason, "Gate is open")
			w.Must(cluster.Client.Status().Patch(w.Context(), g, client.MergeFrom(before)))
		}, v1alpha1.GateNotReadyReason},
		"new": {func(w *world) { w.Gate("other", v1alpha1.GateSpec{Default: opened}) }, v1alpha1.GateNotReadyReason},
		"edited": {func(w *world) {
			w.gate("other", opened)
			w.EditGate(w.ReadGate("other"), func(g *v1alpha1.Gate) { g.Spec.Default = opened })
		}, v1alpha1.GateNotReadyReason},
		"requested to close": {func(w *world) {
			w.gate("other", opened, func(g *v1alpha1.Gate) {
				g.Annotations = map[string]string{v1alpha1.CloseRequestedAtAnnotation: start.Format(time.RFC3339)}
			})
		}, v1alpha1.GateNotReadyReason},
		"due to close": {func(w *world) {
			w.gate("other", opened, func(g *v1alpha1.Gate) { g.Spec.Certificates = &v1alpha1.CertificatePolicy{Strict: true} })
			g := w.ReadGate("other")
			before := g.DeepCopy()
			g.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: closed, Reason: v1alpha1.DefaultReason}
			w.Must(cluster.Client.Status().Patch(w.Context(), g, client.MergeFrom(before)))
		}, ready},
		"deleted": {func(w *world) {
			w.gate("other", opened, func(g *v1alpha1.Gate) { g.Finalizers = []string{"example.com/keep"} })
			w.Must(cluster.Client.Delete(w.Context(), w.ReadGate("other")))
		}, v1alpha1.GateNotFoundReason},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.machine("a", time.Hour)
			w.gate("nights", opened)
			obj := w.refreshes("nodes", func(s *v1alpha1.MachineCertificateRefreshSpec) {
				s.GateRefs = append(s.GateRefs, v1alpha1.GateReference{Name: "other"})
			})
			tc.gate(w)
			w.reconcile()
			w.expectRequested(machines{m})
			w.expectStatus(obj, "due 1", tc.reason)
			if name == "deleted" {
				w.EditGate(w.ReadGate("other"), func(g *v1alpha1.Gate) { g.Finalizers = nil })
				return
			}
			w.gate("other", opened, func(g *v1alpha1.Gate) {
				g.Spec, g.Annotations = v1alpha1.GateSpec{Default: closed}, nil
				g.Status.NextTransition = nil
			})
			w.in(-time.Second) // before the edge
			w.reconcile()
			w.expectRequested(machines{m}, "a")
		})
	}
}
