package controllers

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

// auditGate creates a Gate with mode Audit that is open until somebody closes it.
func (w *world) auditGate(name string, refs ...v1alpha1.TargetReference) *v1alpha1.Gate {
	w.Helper()
	return w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Mode: v1alpha1.ModeAudit, Targets: refs})
}

// mode changes the mode of a Gate as kubectl patch does.
func (w *world) mode(g *v1alpha1.Gate, mode v1alpha1.Mode) {
	w.Helper()
	w.Edit(g, func() { g.Spec.Mode = mode })
}

// expectReady checks what the condition Ready of a Gate says.
func (w *world) expectReady(g *v1alpha1.Gate, want string) {
	w.Helper()
	if got := conditions.Get(g, meta.ReadyCondition); got == nil || got.Message != want || got.Status != metav1.ConditionTrue {
		w.Errorf("Ready is %+v, want %q", got, want)
	}
}

func TestAGateWithModeAuditWritesNothingAndCountsWhatItWouldHold(t *testing.T) {
	t.Parallel()
	w := locking(t)
	free, naming, held := w.kustomization("free", nil), w.kustomization("naming", nil), w.kustomization("held", nil)
	foreign := w.kustomization("foreign", nil)
	w.suspend(foreign)
	w.name(naming, "audit")
	exempt := w.certificate("expires", nil)
	w.issue(exempt, start.Add(-89*day), start.Add(day))
	conditionsBefore := w.reload(exempt).GetConditions()
	other := w.ClosedGate("other", named("held"))
	w.reconcile(other)
	g := w.auditGate("audit", named("free"), named("held"), named("foreign"), certificateRef("expires"))
	w.reconcile(g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 5})
	w.expectReady(g, "audit: 0 of 5 targets would be held, none is")

	w.writes.take("")
	w.close(g, w.in(hours(1)))
	w.reconcile(g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 5, WouldHold: 3, SuspendedByOthers: 1, Exempt: 1})
	if opened := conditions.Get(g, v1alpha1.OpenedCondition); opened.Status != metav1.ConditionFalse || opened.Reason != v1alpha1.CloseRequestedReason {
		t.Errorf("the Gate says %+v", opened)
	}
	w.expectReady(g, "audit: 3 of 5 targets would be held, none is")
	for _, write := range w.writes.take("") {
		if write != "patch-status Gate/audit" {
			t.Errorf("it writes: %s", write)
		}
	}
	for _, app := range []*target.Object{free, naming} {
		w.expectUntouched(app)
	}
	w.expectHeld(held, other)
	equal(t, w.reload(exempt).GetConditions(), conditionsBefore)
	// An object that names a Gate that the GateLock does not know is locked.
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{
		Gates: map[string]bool{key(g): false, key(other): true}, Targets: map[string][]string{"Kustomization/held": {key(other)}},
	})

	w.resume(foreign)
	late := w.kustomization("late", nil)
	w.name(late, "audit")
	w.reconcile(g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 6, WouldHold: 5, Exempt: 1})
	w.open(other, w.clock.Now())
	w.reconcile(other)
	w.expect(held, look{approved: fmt.Sprintf("True GateOpened Released: gate '%s' is open, and gate '%s' has mode Audit.", key(other), key(g))})

	w.open(g, w.in(hours(2)))
	w.reconcile(g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 6})
}

// The interval, an edit of the spec and a restart are not news, and neither is that the Gate opens.
func TestWhatWouldBeHeldIsToldOnceForEachTransition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	foreign := w.kustomization("foreign", nil)
	w.suspend(foreign)
	g := w.auditGate("audit", all())
	w.reconcile(g)
	w.events.take("")

	close := func(at time.Duration) {
		w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, w.in(at).Format(time.RFC3339Nano)+"/1h")
		w.reconcile(g)
	}
	told := func(when string, want ...string) {
		t.Helper()
		if got := w.events.take("Kustomization/"); !slices.Equal(got, want) {
			t.Errorf("%s: got  %q\nwant %q", when, got, want)
		}
	}
	message := func(name, until string) string {
		return fmt.Sprintf("Normal Kustomization/%s WouldHold: Would be held by gate '%s' until %s: closed on request. The gate has mode Audit and holds nothing.", name, key(g), until)
	}
	close(hours(1))
	told("it closes", message("apps", "2026-11-23T14:00:00Z"))
	w.reconcile(g)
	w.Edit(g, func() { g.Spec.Interval = *duration(time.Hour) })
	w.reconcile(g)
	told("an edit and a look")
	w.restart()
	w.reconcile(g)
	told("a restart")
	w.Edit(g, func() { g.Spec.Interval = *duration(2 * time.Hour) })
	w.Must(w.on().handlers.EnqueueAll(w.Context(), g))
	w.Must(w.lookAtWoken()) // before the Gate has decided on that
	w.reconcile(g)
	told("an edit after a restart")
	w.resume(foreign)
	w.reconcile(g)
	told("somebody resumes what he had suspended", message("foreign", "2026-11-23T14:00:00Z"))
	w.suspend(foreign)
	w.reconcile(g)
	w.resume(foreign)
	w.reconcile(g)
	told("once more")
	w.in(hours(2))
	w.reconcile(g)
	told("it opens")
	close(hours(3))
	if got := w.events.take("Kustomization/"); len(got) != 2 || !slices.Contains(got, message("apps", "2026-11-23T16:00:00Z")) {
		t.Errorf("it closes again: got %q", got)
	}
	w.expectUntouched(app)
}

func TestACrashWhileTheModeIsSwitchedIsMended(t *testing.T) {
	for name, to := range map[string]v1alpha1.Mode{"to Enforce": v1alpha1.ModeEnforce, "to Audit": v1alpha1.ModeAudit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range enough {
				w := locking(t)
				app := w.kustomization("apps", nil)
				from := v1alpha1.ModeEnforce
				if to == from {
					from = v1alpha1.ModeAudit
				}
				g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Mode: from, Targets: []v1alpha1.TargetReference{named("apps")}})
				w.reconcile(g)
				w.mode(g, to)
				w.writes.before = crashing(n)
				_, err := w.try(g)
				if l := w.lock(w.Namespace); !w.suspended(app) && len(l.Spec.Targets) > 0 && to == v1alpha1.ModeAudit {
					t.Errorf("crash after %d writes: released before it was unlocked", n)
				}
				w.writes.heal()
				w.restart()
				w.reconcile(g)
				want := lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(g): to == v1alpha1.ModeEnforce}}
				if to == v1alpha1.ModeEnforce {
					w.expectHeld(app, g)
					equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Held: 1})
					want.Targets = map[string][]string{"Kustomization/apps": {key(g)}}
				} else {
					w.expectReleased(app, g)
					equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, WouldHold: 1})
				}
				w.expectLock(w.Namespace, want)
				if err == nil {
					return // all writes were made
				}
			}
			t.Errorf("more than %d writes", enough)
		})
	}
}

// A Gate that holds nothing does not keep a certificate from its Secret either: without any Gate it would stay there for good.
func TestAGateWithModeAuditLetsACertificateBePutToUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.activating("web")
	g := w.activationGate(hours(1))
	w.mode(g, v1alpha1.ModeAudit)
	data := w.keyPair(-time.Hour, 90*day)
	w.stage(web, data)
	w.reconcile(g)
	w.expectActivated(g, "True Activated")
	w.has("web-tls", data)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Exempt: 1})

	blocking := w.Gate("blocking", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{certificateRef("web")}})
	w.reconcile(blocking)
	w.stage(web, w.keyPair(-time.Minute, 90*day))
	w.reconcile(blocking)
	w.expectActivated(blocking, "False GateClosed")
	w.has("web-tls", data)
}

func TestAGateWithModeAuditThroughTheCaches(t *testing.T) {
	w := newWorld(t)
	startManager(t, cluster, func(r *Gating) { r.EventRecorder = w.events })
	apps := w.kustomizations(3)
	g := w.auditGate("production", all())
	counts := func(want v1alpha1.TargetCounts) {
		t.Helper()
		w.soonStatus(g, fmt.Sprintf("%+v", want), func(g *v1alpha1.Gate) bool {
			return g.Status.ObservedGeneration == g.Generation && g.Status.Targets != nil && g.Status.Targets.TargetCounts == want && conditions.IsReady(g)
		})
	}
	counts(v1alpha1.TargetCounts{Total: 3})
	w.close(g, time.Now())
	counts(v1alpha1.TargetCounts{Total: 3, WouldHold: 3})
	w.Edit(g, func() { g.Spec.Interval = *duration(time.Hour) })
	counts(v1alpha1.TargetCounts{Total: 3, WouldHold: 3})
	for _, app := range apps {
		w.expectUntouched(app)
	}
	equal(t, len(w.events.take(" WouldHold: Would be held by gate '"+key(g))), 3)
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

// soonGone waits until an object is no more.
func (w *world) soonGone(obj client.Object) {
	w.Helper()
	soon(w.TB, obj.GetName()+" is gone", func() bool { return w.gone(obj) })
}
