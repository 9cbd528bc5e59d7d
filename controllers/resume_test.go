package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestEnforceHoldsAResumedTargetAgain(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	for range 3 {
		w.resume(app)
		if w.suspended(app) {
			t.Fatal("flux resume does not remove the field any more")
		}
		w.events.take("")
		w.reconcile(g)
		w.expectHeld(app, g)
		events := w.events.take("")
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning Kustomization/apps HeldAgain: ") || !strings.Contains(events[0], key(g)) {
			t.Errorf("want one warning on the target that names the gate, got %q", events)
		}
	}
	w.reconcile(g)
	if events := w.events.take(""); len(events) > 0 {
		t.Errorf("told again: %q", events)
	}
}

func TestRespectLeavesAResumedTargetUntilTheGateNextCloses(t *testing.T) {
	w := newWorld(t)
	app, other := w.kustomization("apps", nil), w.kustomization("other", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", Window: duration(time.Hour), Mode: v1alpha1.ModeLenient,
		Targets: []v1alpha1.TargetReference{named("apps"), named("other")},
	})
	w.reconcile(g)
	w.resume(app)
	w.events.take("")
	for i := range 3 {
		w.in(time.Duration(i) * time.Minute)
		w.reconcile(g)
		w.expect(app, look{heldBy: key(g), approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
		equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 2, Held: 1})
	}
	w.expectHeld(other, g)
	if events := w.events.take(""); len(events) > 0 {
		t.Errorf("events %q", events)
	}

	w.open(g, w.in(hours(1)))
	w.reconcile(g)
	if got := w.look(app); got.suspend != nil || got.heldBy != "" || !strings.HasPrefix(got.approved, "True") {
		t.Errorf("opened: %+v", got)
	}
	w.in(hours(2))
	w.reconcile(g)
	w.expectHeld(app, g)
	w.expectHeld(other, g)
}

// A target that could not say that it is held is held again: nobody knows whether it was before. One that has said so stays resumed.
func TestRespectLeavesAResumedTargetWhoseConditionCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"it is resumed and cannot say so": false, "it cannot say that it is held and is resumed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.kustomization("apps", nil)
			g := w.Gate("production", v1alpha1.GateSpec{
				Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")},
			})
			if !before {
				w.reconcile(g)
				w.resume(app)
			}
			w.writes.before = failing("patch-status Kustomization")
			if _, err := w.try(g); err == nil {
				t.Fatal("its condition was written")
			}
			if before {
				w.resume(app)
			}
			for range 2 {
				if _, err := w.try(g); err == nil || w.suspended(app) != before {
					t.Errorf("held %t, error %v", w.suspended(app), err)
				}
			}
			w.writes.heal()
			w.reconcile(g)
			if before {
				w.expectHeld(app, g)
				w.resume(app)
				w.reconcile(g)
			}
			w.expect(app, look{heldBy: key(g), approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
		})
	}
}

func TestRespectLeavesAResumedTargetThatCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")},
	})
	w.reconcile(g)
	w.resume(app)
	w.APIReader = brokenGet{w.APIReader, "Kustomization"}
	w.writes.before = once("patch-status Kustomization", conflict)
	if _, err := w.try(g); err == nil {
		t.Fatal("it was read")
	}
	w.APIReader = cluster.Client
	w.reconcile(g)
	w.expect(app, look{heldBy: key(g), approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
}

// brokenGet is a client that cannot get objects of a kind.
type brokenGet struct {
	client.Reader
	kind string
}

// Get implements client.Reader.
func (b brokenGet) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind == b.kind {
		return errBroken
	}
	return b.Reader.Get(ctx, key, obj, opts...)
}

func TestEventsAreToldOnChangeOnly(t *testing.T) {
	w := newWorld(t)
	w.kustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Window: duration(time.Hour), Targets: []v1alpha1.TargetReference{named("apps")}})
	k := key(g)
	for _, step := range []struct {
		at   time.Duration
		do   func()
		want []string
	}{
		{0, nil, []string{
			"Normal Gate/production Default: Gate closed by default",
			"Normal Kustomization/apps GateClosed: Held by gate '" + k + "': closed by default."}},
		{time.Minute, nil, nil},
		{hours(1), func() {
			w.Annotate(g, v1alpha1.OpenReasonAnnotation, "hotfix 42")
			w.Annotate(g, v1alpha1.OpenRequestedByAnnotation, "alice")
			w.open(g, start.Add(hours(1)))
		}, []string{
			"Normal Gate/production RequestAccepted: Gate open requested at 2026-11-23T13:00:00Z by alice: hotfix 42",
			"Normal Kustomization/apps RequestAccepted: Request for gate '" + k + "': open requested at 2026-11-23T13:00:00Z by alice: hotfix 42",
			"Normal Gate/production OpenRequested: Gate scheduled for closing at 2026-11-23T14:00:00Z, open requested at 2026-11-23T13:00:00Z by alice: hotfix 42",
			"Normal Kustomization/apps GateOpened: Released: gate '" + k + "' is open."}},
		{hours(1.5), nil, nil},
		{hours(2), nil, []string{
			"Normal Gate/production Default: Gate closed by default",
			"Normal Kustomization/apps GateClosed: Held by gate '" + k + "': closed by default."}},
	} {
		w.in(step.at)
		if step.do != nil {
			step.do()
		}
		w.reconcile(g)
		if got := w.events.take(""); strings.Join(got, "\n") != strings.Join(step.want, "\n") {
			t.Errorf("after %s:\ngot  %q\nwant %q", step.at, got, step.want)
		}
	}
}

func TestAnEventIsToldEvenIfTheConditionTakesASecondTry(t *testing.T) {
	for name, fail := range map[string]func() error{"conflict": conflict, "failure": func() error { return errBroken }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.kustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			for _, reason := range []string{v1alpha1.GateClosedReason, v1alpha1.GateOpenedReason} {
				w.writes.before = once("patch-status Kustomization", fail)
				if _, err := w.try(g); err != nil {
					w.reconcile(g)
				}
				if events := w.events.take("Kustomization/apps Gate"); len(events) != 1 || !strings.Contains(events[0], reason) {
					t.Errorf("want one event %s, got %q", reason, events)
				}
				w.open(g, start)
			}
		})
	}
}
