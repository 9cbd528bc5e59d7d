package controllers

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

var stopped = &v1alpha1.MachineFailure{Machine: "a/b", Message: "failed", At: metav1.NewTime(start)}

// reportMachines writes status.machines of a Gate.
func (w *world) reportMachines(g *v1alpha1.Gate, status *v1alpha1.MachineStatus) error {
	fresh := w.read(client.ObjectKeyFromObject(g))
	before := fresh.DeepCopy()
	fresh.Status.Machines = status
	return cluster.Client.Status().Patch(w.Context(), fresh, client.MergeFrom(before))
}

// The refresh of Machines is reported in the same status. A close that meets such a report is written all the same.
func TestACloseDoesNotWaitForAReportOnMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		state         v1alpha1.State
		request       func(*world, *v1alpha1.Gate, time.Time)
		before, after *v1alpha1.MachineStatus
		want          v1alpha1.MachineStatus
	}{
		"a close": {v1alpha1.StateOpened, (*world).close, &v1alpha1.MachineStatus{Due: 1}, &v1alpha1.MachineStatus{Due: 2}, v1alpha1.MachineStatus{Due: 2}},
		"an open, with which the refresh goes on": {
			v1alpha1.StateClosed, (*world).open, &v1alpha1.MachineStatus{Due: 1, Stopped: stopped}, &v1alpha1.MachineStatus{Due: 2, Stopped: stopped},
			v1alpha1.MachineStatus{Due: 2},
		},
		"an open, and the refresh has stopped meanwhile": {
			v1alpha1.StateClosed, (*world).open, &v1alpha1.MachineStatus{Due: 1}, &v1alpha1.MachineStatus{Due: 1, Stopped: stopped},
			v1alpha1.MachineStatus{Due: 1, Stopped: stopped},
		},
		"a close, and the refresh has stopped meanwhile": {
			v1alpha1.StateOpened, (*world).close, &v1alpha1.MachineStatus{Due: 1}, &v1alpha1.MachineStatus{Due: 1, Stopped: stopped},
			v1alpha1.MachineStatus{Due: 1, Stopped: stopped},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := w.Gate("nights", v1alpha1.GateSpec{Default: tc.state})
			w.reconcile(g)
			w.Must(w.reportMachines(g, tc.before))
			was := conditions.IsTrue(g, v1alpha1.OpenedCondition)
			tc.request(w, g, w.in(hours(1)))
			w.writes.before = once("patch-status Gate/nights", func() error { return w.reportMachines(g, tc.after) })
			_, err := w.decideOn(client.ObjectKeyFromObject(g))
			w.Must(err)
			if w.Read(g); conditions.IsTrue(g, v1alpha1.OpenedCondition) == was || g.Status.Machines == nil {
				t.Fatalf("status %+v", g.Status)
			}
			if !equality.Semantic.DeepEqual(*g.Status.Machines, tc.want) {
				t.Errorf("machines %+v, want %+v", *g.Status.Machines, tc.want)
			}
		})
	}
}

// A Gate that loses its finalizer gets it back, and what is written of its Machines meanwhile is read.
func TestAFinalizerThatMeetsAReportOnMachinesKeepsThatTheRefreshIsStopped(t *testing.T) {
	w := newWorld(t)
	g := w.Gate("nights", v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
	w.reconcile(g)
	w.Must(w.reportMachines(g, &v1alpha1.MachineStatus{Due: 1}))
	w.Must(cluster.Client.Patch(w.Context(), g.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	w.in(hours(1))
	w.close(g, start.Add(hours(1)))
	w.writes.before = once("patch Gate/nights", func() error { return w.reportMachines(g, &v1alpha1.MachineStatus{Due: 1, Stopped: stopped}) })
	_, err := w.decideOn(client.ObjectKeyFromObject(g))
	w.Must(err)
	if w.Read(g); len(g.Finalizers) != 1 || g.Status.Machines == nil || g.Status.Machines.Stopped == nil {
		t.Errorf("finalizers %q, machines %+v", g.Finalizers, g.Status.Machines)
	}
}

// Somebody else writes the Gate while the failure of a Machine is noted in it. That is not a failure of its own.
func TestAFailureOfAMachineIsNotedInAGateThatSomebodyWrites(t *testing.T) {
	w := newWorld(t)
	m := w.machine("a", 2*days)
	g := w.fleetGate("nights", v1alpha1.StateOpened)
	w.reconcile(g)
	w.provider(m, fails)
	w.provider(m, fails)
	w.events.take("")
	w.writes.before = once("patch-status Gate/nights", func() error {
		w.Annotate(w.read(client.ObjectKeyFromObject(g)), "team", "platform")
		return nil
	})
	w.woken.Machines(client.ObjectKeyFromObject(g))
	w.Must(w.lookAtWoken())
	if failures := w.memory.tally.Failures(tallied(g)); len(failures) > 0 {
		t.Errorf("failures after the conflict: %+v", failures)
	}
	w.woken.Machines(client.ObjectKeyFromObject(g))
	w.Must(w.lookAtWoken())
	if w.Read(g); fleetStatus(g) != "due 1, stopped by a" {
		t.Errorf("machines: %s", fleetStatus(g))
	}
	if told := w.events.take("RefreshCertsFailed"); len(told) != 1 {
		t.Errorf("told %q", told)
	}
}
