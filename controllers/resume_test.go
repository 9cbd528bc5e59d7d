package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestRespectLeavesResumedTargetUntilNextClose(t *testing.T) {
	w := newWorld(t)
	app, other := w.NewKustomization("apps", nil), w.NewKustomization("other", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", Window: duration(time.Hour), Mode: v1alpha1.ModeLenient,
		Targets: []v1alpha1.TargetReference{named("apps"), named("other")},
	})
	w.Reconcile(g)
	w.Resume(app)
	w.Events.Take("")
	for i := range 3 {
		w.In(time.Duration(i) * time.Minute)
		w.Reconcile(g)
		w.Expect(app, suspension{HeldBy: key(g), Approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
		equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 2, Held: 1})
	}
	w.ExpectHeld(other, g)
	if events := w.Events.Take(""); len(events) > 0 {
		t.Errorf("events %q", events)
	}

	w.Open(g, w.In(hours(1)))
	w.Reconcile(g)
	if got := w.Suspension(app); got.Suspend != nil || got.HeldBy != "" || !strings.HasPrefix(got.Approved, "True") {
		t.Errorf("opened: %+v", got)
	}
	w.In(hours(2))
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.ExpectHeld(other, g)
}

// If the condition of a hold could not be written, a resumed target is held again, because it is unknown whether it was held before. If the
// condition was written, the target stays resumed.
func TestRespectLeavesResumedTargetWithoutCondition(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"it is resumed and cannot say so": false, "it cannot say that it is held and is resumed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.Gate("production", v1alpha1.GateSpec{
				Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")},
			})
			if !before {
				w.Reconcile(g)
				w.Resume(app)
			}
			w.Writes.Before = failing("patch-status Kustomization")
			if _, err := w.Try(g); err == nil {
				t.Fatal("its condition was written")
			}
			if before {
				w.Resume(app)
			}
			for range 2 {
				if _, err := w.Try(g); err == nil || w.Suspended(app) != before {
					t.Errorf("held %t, error %v", w.Suspended(app), err)
				}
			}
			w.Writes.Reset()
			w.Reconcile(g)
			if before {
				w.ExpectHeld(app, g)
				w.Resume(app)
				w.Reconcile(g)
			}
			w.Expect(app, suspension{HeldBy: key(g), Approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
		})
	}
	t.Run("it cannot be read again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")}})
		w.Reconcile(g)
		w.Resume(app)
		w.APIReader = brokenGet{w.APIReader, "Kustomization"}
		w.Writes.Before = once("patch-status Kustomization", conflict)
		if _, err := w.Try(g); err == nil {
			t.Fatal("it was read")
		}
		w.APIReader = cluster.Client
		w.Reconcile(g)
		w.Expect(app, suspension{HeldBy: key(g), Approved: "True Resumed Resumed manually. Gate '" + key(g) + "' permits that until it closes again."})
	})
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

func TestEventsAreEmittedOnChangeOnly(t *testing.T) {
	w := newWorld(t)
	w.NewKustomization("apps", nil)
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
			w.Open(g, start.Add(hours(1)))
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
		w.In(step.at)
		if step.do != nil {
			step.do()
		}
		w.Reconcile(g)
		if got := w.Events.Take(""); strings.Join(got, "\n") != strings.Join(step.want, "\n") {
			t.Errorf("after %s:\ngot  %q\nwant %q", step.at, got, step.want)
		}
	}
}

func TestEventIsEmittedAfterRetryOfCondition(t *testing.T) {
	for name, fail := range map[string]func() error{"conflict": conflict, "failure": func() error { return errBroken }} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.NewKustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			for _, reason := range []string{v1alpha1.GateClosedReason, v1alpha1.GateOpenedReason} {
				w.Writes.Before = once("patch-status Kustomization", fail)
				if _, err := w.Try(g); err != nil {
					w.Reconcile(g)
				}
				if events := w.Events.Take("Kustomization/apps Gate"); len(events) != 1 || !strings.Contains(events[0], reason) {
					t.Errorf("want one event %s, got %q", reason, events)
				}
				w.Open(g, start)
			}
		})
	}
}
