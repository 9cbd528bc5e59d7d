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

	// A day before the expiry, a refresh begins although the Gate is closed.
	w.gate("nights", closed)
	w.in(89*day - time.Second)
	if again := w.reconcile(); again != time.Second {
		t.Errorf("requeue after %s", again)
	}
	w.expectRequested(all)
	w.in(89 * day)
	w.told("")
	w.reconcile()
	w.expectRequested(all, "late")
	if events := w.told("RefreshCertsInProgress"); len(events) != 1 || !strings.Contains(events[0], "although Gate nights is closed") {
		t.Errorf("events %q", events)
	}
	w.kinds.machines = ""
	w.reconcile()
	w.expectStatus(obj, "due 0", v1alpha1.CRDNotFoundReason)
}

func TestFailureStopsRefreshUntilChange(t *testing.T) {
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
		w.provider(broken, neverAdvances)
		w.provider(broken, neverAdvances)
		timeout := time.Duration(4*round)*time.Hour + time.Hour
		w.in(timeout - time.Second)
		if again := w.reconcile(); again != time.Second {
			t.Errorf("just before the timeout: requeue after %s", again)
		}
		w.expectStatus(obj, "due 2, refreshing a", ready)
		w.in(timeout)
		w.told("")
		w.reconcile()
		w.expectRequested(machines{broken, next})
		w.expectStatus(obj, "due 2, stopped by a", stopped)
		const message = `the request was removed, the status is "done"`
		if events := w.told("Warning RefreshCertsFailed"); len(events) != 1 || !strings.Contains(events[0], message) {
			t.Errorf("events %q", events)
		}
		w.in(timeout + time.Hour)
		w.reconcile()
		w.expectRequested(machines{broken, next})
		w.in(time.Duration(4*round)*time.Hour + 4*time.Hour)
		resume()
	}
	w.reconcile()
	w.expectStatus(obj, "due 2, refreshing a", ready)
}
