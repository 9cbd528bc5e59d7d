package controllers

import (
	"context"
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The lock has no say over Certificates: one that names a Gate which the GateLock lacks does not wait for it.
func TestACertificateThatNamesAGateElsewhereDoesNotWaitForTheLock(t *testing.T) {
	w := locking(t)
	w.AllowCrossNamespaceRefs = true
	other := w.NewNamespace()
	c := w.certificate("web", nil)
	g := w.gateIn(other, "production", v1alpha1.GateSpec{Default: "closed"})
	w.name(c, other+"/production")
	w.reconcile(g)
	if got := w.reload(c).GetAnnotations()[v1alpha1.HeldByAnnotation]; got != other+"/production" {
		t.Fatalf("held by %q", got)
	}
	w.open(g, start)
	w.reconcile(g)
	if got := w.reload(c).GetAnnotations()[v1alpha1.HeldByAnnotation]; got != "" {
		t.Errorf("held by %q although the gate is open", got)
	}
}

// unreadableLocks is a LockReader that reads no GateLock.
type unreadableLocks struct{ LockReader }

// Lock implements LockReader.
func (unreadableLocks) Lock(context.Context, string) (*v1alpha1.GateLock, error) {
	return nil, errBroken
}

func TestALockThatCannotBeReadKeepsWhatItCanLockAlone(t *testing.T) {
	w := locking(t)
	app, c := w.kustomization("apps", nil), w.certificate("web", nil)
	g := w.ClosedGate("production", named("apps"), certificateRef("web"))
	w.reconcile(g)
	w.open(g, start)
	w.Locks = unreadableLocks{w.Locks}
	_, _ = w.try(g)
	if got := w.look(app).heldBy; got != key(g) {
		t.Errorf("the Kustomization is held by %q", got)
	}
	if got := w.look(c).heldBy; got != "" {
		t.Errorf("the Certificate is held by %q", got)
	}
}

// A request to a Machine cannot be taken back: its own Gate counts as it is once the Machines were read.
func TestAGateThatClosesOnceItsMachinesWereReadRefreshesNone(t *testing.T) {
	for name, closes := range map[string]func(w *world, g *v1alpha1.Gate){
		"by a request": func(w *world, g *v1alpha1.Gate) {
			w.close(g.DeepCopy(), start)
			_, err := w.decideOn(client.ObjectKeyFromObject(g))
			w.Must(err)
		},
		"by a suspension": func(w *world, g *v1alpha1.Gate) {
			fresh := g.DeepCopy()
			w.Must(w.TryRead(fresh))
			w.Edit(fresh, func() { fresh.Spec.Suspend = true })
		},
		"by its window": func(w *world, _ *v1alpha1.Gate) { w.in(hours(1)) },
		"not at all":    func(*world, *v1alpha1.Gate) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.machine("a", 2*days)
			g := w.fleetGate("nights", "closed", func(s *v1alpha1.GateSpec) {
				s.Windows = []v1alpha1.Period{dated("night", -hours(1), hours(1))}
			})
			w.in(hours(1) - time.Millisecond)
			_, err := w.decideOn(client.ObjectKeyFromObject(g))
			w.Must(err)
			read := false
			w.APIReader = interceptor.NewClient(cluster.Client, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					err := c.List(ctx, list, opts...)
					if _, ok := list.(*unstructured.UnstructuredList); ok && !read {
						read = true
						closes(w, g)
					}
					return err
				},
			})
			w.woken.Machines(client.ObjectKeyFromObject(g))
			_ = w.lookAtWoken() // its report meets a Gate that has changed
			w.APIReader = cluster.Client
			request, _ := w.asked(m)
			if !read || (request != "") != (name == "not at all") {
				t.Errorf("read %t, asked %q", read, request)
			}
		})
	}
}

// Nobody decides about a suspended Gate, also if it is suspended while it decides: it stays closed.
func TestAGateThatIsSuspendedWhileItDecidesStaysAsItWas(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.ClosedGate("freeze", named("apps"))
	w.reconcile(g)
	w.open(g, start)
	w.writes.before = once("patch-status Gate/freeze", func() error {
		fresh := &v1alpha1.Gate{}
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), fresh))
		w.Edit(fresh, func() { fresh.Spec.Suspend = true })
		return nil
	})
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)}
	if _, err := w.on().gates.Reconcile(w.Context(), req); err == nil {
		t.Error("no conflict")
	}
	_, err := w.on().gates.Reconcile(w.Context(), req)
	w.Must(err)
	if w.memory.tally.Sums(tallied(g)).Awaits {
		t.Error("its decision is still awaited")
	}
	w.reconcile(g)
	if w.expectHeld(app, g); !g.Spec.Suspend {
		t.Error("it is not suspended")
	}
}

// The refresh of Machines is reported in the same status. A close that meets such a report is written all the same.
func TestACloseDoesNotWaitForAReportOnMachines(t *testing.T) {
	report := func(w *world, g *v1alpha1.Gate, status *v1alpha1.MachineStatus) error {
		fresh := &v1alpha1.Gate{}
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), fresh))
		before := fresh.DeepCopy()
		fresh.Status.Machines = status
		return cluster.Client.Status().Patch(w.Context(), fresh, client.MergeFrom(before))
	}
	stopped := &v1alpha1.MachineFailure{Machine: "a/b", Message: "failed", At: metav1.NewTime(start)}
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
		"a close, and the refresh has stopped meanwhile": {
			v1alpha1.StateOpened, (*world).close, &v1alpha1.MachineStatus{Due: 1}, &v1alpha1.MachineStatus{Due: 1, Stopped: stopped},
			v1alpha1.MachineStatus{Due: 1, Stopped: stopped},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := w.Gate("nights", v1alpha1.GateSpec{Default: tc.state})
			w.reconcile(g)
			w.Must(report(w, g, tc.before))
			was := conditions.IsTrue(g, v1alpha1.OpenedCondition)
			tc.request(w, g, w.in(hours(1)))
			w.writes.before = once("patch-status Gate/nights", func() error { return report(w, g, tc.after) })
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

func TestACloseThatSomebodyElseRequestsAtTheSameTimeIsLookedAt(t *testing.T) {
	with := func(annotations map[string]string) *v1alpha1.Gate {
		return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	before := map[string]string{v1alpha1.CloseRequestedAtAnnotation: "2026-11-23T12:00:00Z", v1alpha1.CloseRequestedByAnnotation: "jane"}
	if (requestChanged{}).Update(event.UpdateEvent{ObjectOld: with(before), ObjectNew: with(before)}) {
		t.Error("no change is looked at")
	}
	for _, name := range []string{
		v1alpha1.OpenRequestedAtAnnotation, v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReceivedAnnotation,
	} {
		after := maps.Clone(before)
		after[name] = "another"
		if !(requestChanged{}).Update(event.UpdateEvent{ObjectOld: with(before), ObjectNew: with(after)}) {
			t.Errorf("a change of %s is not looked at", name)
		}
	}
}

// What one controller has written of a Gate is not forgotten because another one reads an older version.
func TestAnOlderReadDoesNotForgetWhatWasWritten(t *testing.T) {
	at := func(version string) *v1alpha1.Gate {
		return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", ResourceVersion: version}}
	}
	v := &versions{}
	v.reconciles(at("10"))
	v.wrote(at("11"))
	v.reconciles(at("10"))
	if !v.behind(at("10")) {
		t.Error("version 10 is taken for the latest")
	}
	v.reconciles(at("11"))
	if v.behind(at("11")) {
		t.Error("version 11 is taken for an old one")
	}
}

func TestAnotherObjectOfTheSameNameMatters(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	before := app.DeepCopy()
	w.Must(cluster.Client.Delete(w.Context(), &app.Unstructured))
	if !matters(before, &w.kustomization("apps", nil).Unstructured) {
		t.Error("it is not looked at")
	}
}
