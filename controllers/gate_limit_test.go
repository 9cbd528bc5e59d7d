package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// freezing is open, closes for an hour in an hour, and then over one target at most.
func freezing(refs ...v1alpha1.TargetReference) v1alpha1.GateSpec {
	return v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, MaxTargets: ptr.To(int32(1)), Targets: refs,
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: dated("freeze", hours(1), hours(2))}},
	}
}

// expectTooMany checks that a Gate says that it governs too much.
func (w *world) expectTooMany(g *v1alpha1.Gate, opened string) {
	w.Helper()
	o, ready := conditions.Get(g, v1alpha1.OpenedCondition), conditions.Get(g, meta.ReadyCondition)
	if o == nil || string(o.Status) != opened || o.Reason != v1alpha1.TooManyTargetsReason {
		w.Errorf("Opened is %+v", o)
		return
	}
	if ready.Status != "False" || ready.Reason != v1alpha1.TooManyTargetsReason || ready.Message != o.Message || !conditions.IsStalled(g) || conditions.IsReconciling(g) {
		w.Errorf("%+v", g.Status.Conditions)
	}
	if got := w.series()["gate_too_many_targets"]; got != 1 {
		w.Errorf("the metric says %v", got)
	}
}

func TestACloseThatWouldHoldTooManyTargetsIsRefusedAndTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.kustomization("a", nil), w.kustomization("b", nil)
	g := w.Gate("production", freezing(all()))
	w.reconcile(g)
	w.events.take("")
	w.in(hours(1))
	w.reconcile(g)
	w.expectUntouched(a)
	w.expectUntouched(b)
	w.expectTooMany(g, "True")
	message := "Gate stays opened although it is due to close (closed by close period 'freeze', scheduled for opening at 2026-11-23T14:00:00Z): " +
		"it governs 2 targets, and spec.maxTargets allows 1. Raise spec.maxTargets or take targets out."
	equal(t, opened(g), "True TooManyTargets: "+message)
	equal(t, w.events.take("Warning Gate/production"), []string{"Warning Gate/production TooManyTargets: " + message})
	if last := g.Status.LastTransition; g.Status.NextTransition != nil || last.State != v1alpha1.StateOpened || !last.At.Time.Equal(start) {
		t.Errorf("it says that it opened at %v and changes at %+v", last, g.Status.NextTransition)
	}
	if e := g.Status.History[0]; e.State != v1alpha1.StateOpened || e.Reason != v1alpha1.TooManyTargetsReason || e.Refused != message {
		t.Errorf("the history begins with %+v", e)
	}
	w.in(hours(1.5))
	w.reconcile(g)
	if events := w.events.take(""); len(events) > 0 || len(g.Status.History) != 2 {
		t.Errorf("it is told once more: %q, %+v", events, g.Status.History)
	}

	w.in(hours(2))
	w.reconcile(g)
	if reason := conditions.GetReason(g, v1alpha1.OpenedCondition); reason != v1alpha1.OutsideClosePeriodsReason || !conditions.IsReady(g) || conditions.IsStalled(g) {
		t.Errorf("after the period: %+v", g.Status.Conditions)
	}
	if value, ok := w.series()["gate_too_many_targets"]; ok {
		t.Errorf("the metric still says %v", value)
	}
	if len(g.Status.History) != 2 {
		t.Errorf("it did not close and says that it opened: %+v", g.Status.History)
	}
}

func TestARefusedGateClosesAtOnceWhenThereAreFewTargets(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, g *v1alpha1.Gate){
		"a target is deleted":      func(w *world, g *v1alpha1.Gate) { w.remove(inGit(w.Namespace, "b", nil), g) },
		"a target loses its label": func(w *world, g *v1alpha1.Gate) { w.relabel(inGit(w.Namespace, "b", nil), nil, g) },
		"the limit is raised":      func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.MaxTargets = ptr.To(int32(2)) }) },
		"the limit is gone":        func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.MaxTargets = nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			labels := map[string]string{"tier": "web"}
			a := w.kustomization("a", labels)
			w.kustomization("b", labels)
			g := w.Gate("production", freezing(all("tier", "web")))
			w.reconcile(g)
			w.in(hours(1))
			w.reconcile(g)
			w.expectTooMany(g, "True")
			change(w, g)
			w.reconcile(g)
			w.expectHeld(a, g)
			if last := g.Status.LastTransition; last.State != v1alpha1.StateClosed || last.By != "freeze" || !conditions.IsReady(g) {
				t.Errorf("%+v, %+v", last, g.Status.Conditions)
			}
		})
	}
}

// A verdict that takes a Gate which is due to close for closed would hold before the refusal.
func TestNothingIsHeldBeforeARefusal(t *testing.T) {
	t.Parallel()
	w := locking(t)
	a, b := w.kustomization("a", nil), w.kustomization("b", nil)
	g := w.Gate("production", freezing(all()))
	w.reconcile(g)
	before := w.lock(w.Namespace).Spec
	w.in(hours(1))
	w.woken.Targets(queue.Hold, target.KeyOf(a), target.KeyOf(b))
	w.woken.Locks(w.Namespace)
	w.Must(w.lookAtWoken())
	w.expectUntouched(a)
	w.expectUntouched(b)
	w.expectLock(w.Namespace, before)
	w.reconcile(g)
	w.expectUntouched(a)
	w.expectTooMany(g, "True")
}

func TestAnEditOfAClosedGateHoldsNothingMoreThanIsAllowed(t *testing.T) {
	t.Parallel()
	w := locking(t)
	labels := map[string]string{"tier": "web"}
	a, b, c := w.kustomization("a", labels), w.kustomization("b", nil), w.kustomization("c", nil)
	spec := v1alpha1.GateSpec{Default: v1alpha1.StateClosed, MaxTargets: ptr.To(int32(1)), Targets: []v1alpha1.TargetReference{all("tier", "web")}}
	g := w.Gate("production", spec)
	w.reconcile(g)
	w.expectHeld(a, g)
	locked := w.lock(w.Namespace).Spec
	for _, name := range []string{"what it governs grows", "it governs others"} {
		w.Edit(g, func() {
			g.Spec.Targets = map[string][]v1alpha1.TargetReference{"what it governs grows": {all()}, "it governs others": {named("b"), named("c")}}[name]
		})
		w.reconcile(g)
		w.expectTooMany(g, "False")
		w.expectUntouched(b)
		w.expectUntouched(c)
		w.expectLock(w.Namespace, locked)
		if !w.suspended(a) {
			t.Errorf("%s: what was held is let go", name)
		}
		w.resume(a)
		w.reconcile(g)
		if !w.suspended(a) {
			t.Errorf("%s: what was held is let go when somebody resumes it", name)
		}
	}
	if told := w.events.take("Warning Gate/production"); len(told) != 1 || !strings.Contains(told[0], "what it holds stays held, and nothing else is held: it governs 3 targets") {
		t.Errorf("told %q", told)
	}
	w.Edit(g, func() { g.Spec.MaxTargets = ptr.To(int32(3)) })
	w.reconcile(g)
	w.expectHeld(b, g)
	w.expectHeld(c, g)
	w.Edit(g, func() { g.Spec.Default = v1alpha1.StateOpened })
	w.reconcile(g)
	w.expectReleased(b, g)
}

func TestTheLockOfANamespaceThatAnEditTakesOutStaysIfTheEditIsTooMuch(t *testing.T) {
	t.Parallel()
	w := locking(t)
	w.AllowCrossNamespaceRefs = true
	other := w.NewNamespace()
	a := w.kustomizationIn(other, "a", nil)
	w.kustomization("b", nil)
	w.kustomization("c", nil)
	ref := named("a")
	ref.Namespace = other
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, MaxTargets: ptr.To(int32(1)), Targets: []v1alpha1.TargetReference{ref}})
	w.reconcile(g)
	w.expectHeld(a, g)
	locked := w.lock(other).Spec
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{all()} })
	w.reconcile(g)
	w.expectTooMany(g, "False")
	w.expectLock(other, locked)
	if !w.suspended(a) {
		t.Error("it is let go")
	}
}

func TestAClosedGateHoldsNewObjectsBeyondItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.kustomization("a", nil)
	spec := freezing(all())
	spec.Default = v1alpha1.StateClosed
	spec.ClosePeriods = nil
	g := w.Gate("production", spec)
	w.reconcile(g)
	w.expectHeld(a, g)
	b := w.kustomization("b", nil)
	w.reconcile(g)
	w.expectHeld(b, g)
	if reason := conditions.GetReason(g, v1alpha1.OpenedCondition); reason != v1alpha1.DefaultReason {
		t.Error(opened(g))
	}
}

func TestAGateThatWouldHoldTooMuchAtFirstSight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.kustomization("a", nil), w.kustomization("b", nil)
	spec := v1alpha1.GateSpec{Default: v1alpha1.StateClosed, MaxTargets: ptr.To(int32(1)), Targets: []v1alpha1.TargetReference{all()}}
	g := w.Gate("production", spec)
	w.reconcile(g)
	w.expectUntouched(a)
	w.expectUntouched(b)
	w.expectTooMany(g, "True")
	if told := w.events.take("Warning Gate/production"); len(told) != 1 {
		t.Errorf("told %q", told)
	}

	// A Gate that somebody restores from a backup has no status, but what it held has its name.
	w = newWorld(t)
	a, b = w.kustomization("a", nil), w.kustomization("b", nil)
	spec.MaxTargets = nil
	g = w.Gate("production", spec)
	w.reconcile(g)
	w.expectHeld(a, g)
	w.Edit(g, func() { g.Finalizers = nil })
	w.Must(cluster.Client.Delete(w.Context(), g))
	spec.MaxTargets = ptr.To(int32(1))
	w.restart()
	g = w.Gate("production", spec)
	w.reconcile(g)
	w.expectTooMany(g, "False")
	if !w.suspended(a) || !w.suspended(b) {
		t.Error("what the gate held is let go")
	}
}

func TestARefusalOutlivesARestartWhoseTargetsAreNotReadYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.kustomization("a", nil)
	w.kustomization("b", nil)
	g := w.Gate("production", freezing(all()))
	w.reconcile(g)
	w.in(hours(1))
	w.reconcile(g)
	message := opened(g)
	targets := w.Targets
	w.restart()
	w.Targets = unread{targets}
	result, err := w.decideOn(client.ObjectKeyFromObject(g))
	w.Must(err)
	g = w.read(client.ObjectKeyFromObject(g))
	if opened(g) != message || result.RequeueAfter > wakeDelay {
		t.Errorf("it says %q and is looked at again after %s", opened(g), result.RequeueAfter)
	}
	w.Targets = targets
	w.reconcile(g)
	w.expectUntouched(a)
	if opened(g) != message {
		t.Error(opened(g))
	}
}

func TestAGateWhoseTargetsAreNotReadYetCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kustomization("a", nil)
	w.kustomization("b", nil)
	g := w.Gate("production", freezing(all()))
	w.reconcile(g)
	targets := w.Targets
	w.restart()
	w.Targets = unread{targets}
	w.in(hours(1))
	_, err := w.decideOn(client.ObjectKeyFromObject(g))
	w.Must(err)
	if g = w.read(client.ObjectKeyFromObject(g)); opened(g) != "False ClosePeriod: Gate closed by close period 'freeze', scheduled for opening at 2026-11-23T14:00:00Z" {
		t.Error(opened(g))
	}
}

func TestAnInvalidGateWhoseCloseWasRefusedClosesWhenItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.kustomization("a", nil)
	b := w.kustomization("b", nil)
	g := w.Gate("production", freezing(all()))
	w.reconcile(g)
	w.in(hours(1))
	w.reconcile(g)
	never := v1alpha1.ClosePeriod{Period: v1alpha1.Period{Name: "never", Schedule: ptr.To("0 0 30 2 *"), Duration: duration(time.Hour)}}
	w.Edit(g, func() { g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, never) })
	w.reconcile(g)
	w.expectUntouched(a)
	w.remove(b, g)
	w.reconcile(g)
	w.expectHeld(a, g)
	if !conditions.IsStalled(g) || conditions.GetReason(g, meta.ReadyCondition) != v1alpha1.InvalidSpecReason {
		t.Errorf("%+v", g.Status.Conditions)
	}
}

// unread is a cache whose objects are not read yet.
type unread struct{ TargetReader }

// Select implements TargetReader.
func (unread) Select(context.Context, target.Adapter, string, *v1alpha1.TargetReference) ([]*target.Object, error) {
	return nil, errNotRead
}

// remove deletes a target. Its event wakes what it wakes, among it a Gate.
func (w *world) remove(obj *target.Object, g *v1alpha1.Gate) {
	w.Helper()
	w.reload(obj)
	w.Must(cluster.Client.Delete(w.Context(), obj))
	w.happens(&obj.Unstructured, nil, g)
}

// relabel gives a target other labels. Its event wakes what it wakes, among it a Gate.
func (w *world) relabel(obj *target.Object, labels map[string]string, g *v1alpha1.Gate) {
	w.Helper()
	before := w.reload(obj).DeepCopy()
	w.Edit(obj, func() { obj.SetLabels(labels) })
	w.happens(before, &obj.Unstructured, g)
}

// happens handles the event of a target, and expects that it wakes a Gate in the end.
func (w *world) happens(before, after *unstructured.Unstructured, g *v1alpha1.Gate) {
	w.Helper()
	key := client.ObjectKeyFromObject(g)
	w.woken.has(key)
	w.on().events.target(w.Context(), before, after, false)
	w.Must(w.lookAtWoken())
	if !w.woken.has(key) {
		w.Errorf("nobody looks at gate %s", key)
	}
}

// Anybody may name a Gate who may write an object.
func TestWhoNamesAGateDoesNotKeepItFromClosing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, stranger := w.kustomization("apps", nil), w.kustomization("stranger", nil)
	g := w.Gate("production", freezing(named("apps")))
	w.name(stranger, "production")
	w.reconcile(g)
	w.in(hours(1))
	w.reconcile(g)
	w.expectHeld(app, g)
	w.expectHeld(stranger, g)
}
