package controllers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// auditGate creates a Gate with mode Audit that is open by default.
func (w *world) auditGate(name string, refs ...v1alpha1.TargetReference) *v1alpha1.Gate {
	w.Helper()
	return w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Mode: v1alpha1.ModeAudit, Targets: refs})
}

// mode changes the mode of a Gate as kubectl patch does.
func (w *world) mode(g *v1alpha1.Gate, mode v1alpha1.Mode) {
	w.Helper()
	w.Edit(g, func() { g.Spec.Mode = mode })
}

// expectReady checks that a Gate is ready, and the message of the condition.
func (w *world) expectReady(g *v1alpha1.Gate, want string) {
	w.Helper()
	if got := conditions.Get(g, meta.ReadyCondition); got == nil || got.Message != want || got.Status != metav1.ConditionTrue {
		w.Errorf("Ready is %+v, want %q", got, want)
	}
}

func TestGateWithModeAuditOnlyCounts(t *testing.T) {
	t.Parallel()
	w := locking(t)
	free, naming, held := w.NewKustomization("free", nil), w.NewKustomization("naming", nil), w.NewKustomization("held", nil)
	foreign := w.NewKustomization("foreign", nil)
	w.Suspend(foreign)
	w.name(naming, "audit")
	exempt := w.certificate("expires", nil)
	w.issue(exempt, start.Add(-89*day), start.Add(day))
	conditionsBefore := w.Reload(exempt).GetConditions()
	other := w.ClosedGate("other", named("held"))
	w.Reconcile(other)
	g := w.auditGate("audit", named("free"), named("held"), named("foreign"), certificateRef("expires"))
	w.Reconcile(g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 5})
	w.expectReady(g, "audit: 0 of 5 targets would be held, none is")

	closes := func(at time.Duration) {
		w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, w.In(at).Format(time.RFC3339Nano)+"/1h")
		w.Reconcile(g)
	}
	// told checks that some targets have an event, and no others.
	told := func(when, until string, names ...string) {
		t.Helper()
		var want []string
		for _, name := range names {
			want = append(want, fmt.Sprintf("Normal Kustomization/%s WouldHold: Would be held by gate '%s' until %s: closed on request. The gate has mode Audit and holds nothing.", name, key(g), until))
		}
		got := w.Events.Take("WouldHold")
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", when, got, want)
		}
	}
	const until = "2026-11-23T14:00:00Z"
	w.Writes.Take("")
	closes(hours(1))
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 5, WouldHold: 3, SuspendedByOthers: 1, Exempt: 1})
	if opened := conditions.Get(g, v1alpha1.OpenedCondition); opened.Status != metav1.ConditionFalse || opened.Reason != v1alpha1.CloseRequestedReason {
		t.Errorf("the condition is %+v", opened)
	}
	w.expectReady(g, "audit: 3 of 5 targets would be held, none is")
	for _, write := range w.Writes.Take("") {
		if write != "patch-status Gate/audit" {
			t.Errorf("it writes: %s", write)
		}
	}
	for _, app := range []*target.Object{free, naming} {
		w.ExpectUntouched(app)
	}
	w.ExpectHeld(held, other)
	equal(t, w.Reload(exempt).GetConditions(), conditionsBefore)
	// An object that refers to a Gate without an entry in the GateLock is locked.
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{
		Gates: map[string]bool{key(g): false, key(other): true}, Targets: map[string][]string{"Kustomization/held": {key(other)}},
	})
	told("it closes", until, "free", "held", "naming")

	// A resync, an edit of the spec and a restart emit no new event.
	for _, edits := range []func(){
		func() {},
		func() { w.Edit(g, func() { g.Spec.Interval = *duration(time.Hour) }) },
		w.restart,
		func() {
			w.Edit(g, func() { g.Spec.Interval = *duration(2 * time.Hour) })
			w.Must(w.Reconcilers().Handlers.EnqueueAll(w.Context(), g))
			w.Must(w.ReconcileEnqueued()) // before the Gate has been reconciled
		},
	} {
		edits()
		w.Reconcile(g)
	}
	told("nothing changes", until)
	w.Resume(foreign)
	w.Reconcile(g)
	told("a user resumes a target", until, "foreign")
	w.Suspend(foreign)
	w.Reconcile(g)
	w.Resume(foreign)
	late := w.NewKustomization("late", nil)
	w.name(late, "audit")
	w.Reconcile(g)
	told("a target is new, and another one resumed again", until, "late")
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 6, WouldHold: 5, Exempt: 1})
	w.Open(other, w.FakeClock.Now())
	w.Reconcile(other)
	w.Expect(held, suspension{Approved: fmt.Sprintf("True GateOpened Released: gate '%s' is open, and gate '%s' has mode Audit.", key(other), key(g))})

	w.In(hours(2))
	w.Reconcile(g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 6})
	told("it opens", until)
	closes(hours(3))
	told("it closes again", "2026-11-23T16:00:00Z", "foreign", "free", "held", "late", "naming")
	w.ExpectUntouched(free)
}

// auditThroughTheCaches is a case of TestThroughTheCaches.
func auditThroughTheCaches(t *testing.T, w *world) {
	apps := w.NewKustomizations(3)
	g := w.auditGate("production", all())
	counts := func(want v1alpha1.TargetCounts) {
		t.Helper()
		w.soonStatus(g, fmt.Sprintf("%+v", want), func(g *v1alpha1.Gate) bool {
			return g.Status.ObservedGeneration == g.Generation && g.Status.Targets != nil && g.Status.Targets.TargetCounts == want && conditions.IsReady(g)
		})
	}
	counts(v1alpha1.TargetCounts{Total: 3})
	w.Close(g, time.Now())
	counts(v1alpha1.TargetCounts{Total: 3, WouldHold: 3})
	w.Edit(g, func() { g.Spec.Interval = *duration(time.Hour) })
	counts(v1alpha1.TargetCounts{Total: 3, WouldHold: 3})
	for _, app := range apps {
		w.ExpectUntouched(app)
	}
	equal(t, len(w.Events.Take(" WouldHold: Would be held by gate '"+key(g))), 3)
	w.mode(g, v1alpha1.ModeEnforce)
	counts(v1alpha1.TargetCounts{Total: 3, Held: 3})
	w.soonHeld(apps[1], g)
	w.mode(g, v1alpha1.ModeAudit)
	counts(v1alpha1.TargetCounts{Total: 3, WouldHold: 3})
	for _, app := range apps {
		w.soonFree(app)
	}
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.soonGone(g)
}

// soonGone waits until an object is deleted.
func (w *world) soonGone(obj client.Object) {
	w.Helper()
	soon(w.TB, obj.GetName()+" is gone", func() bool { return w.gone(obj) })
}
