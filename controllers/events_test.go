package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	ourGroup = "gating.toolkit.fluxcd.io"
	ksGroup  = "kustomize.toolkit.fluxcd.io"
)

// The first hundred targets have an event each, in order.
func TestEventsForManyTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = events.MaxTargetEvents + 5
	for i := range n {
		w.NewKustomization(fmt.Sprintf("app-%03d", i), nil)
	}
	g := w.ClosedGate("production", all())
	transition := func(reason, summary string) {
		t.Helper()
		w.Reconcile(g)
		w.Reconcile(g)
		var onTargets, onGate []string
		for _, event := range w.Events.Take(reason) {
			if strings.HasPrefix(event, "Normal Kustomization/") {
				onTargets = append(onTargets, event)
			} else {
				onGate = append(onGate, event)
			}
		}
		if len(onTargets) != events.MaxTargetEvents {
			t.Errorf("%s: %d events on targets", reason, len(onTargets))
		}
		equal(t, onGate, []string{"Normal Gate/production " + reason + ": " + summary})
	}
	transition("GateClosed", fmt.Sprintf("%d of %d targets held", n, n))

	w.request(g, "open", start.Add(time.Hour), "alice", "planned")
	w.Reconcile(g)
	want := make([]string, events.MaxTargetEvents)
	for i := range want {
		want[i] = fmt.Sprintf("Normal Kustomization/app-%03d RequestPlanned: Request for gate '%s': open requested at 2026-11-23T13:00:00Z by alice: planned", i, key(g))
	}
	equal(t, w.Events.Take("Kustomization"), want)
	w.Reconcile(g)
	expectNone(t, w.Events.Take(""))
	w.In(time.Hour)
	transition("GateOpened", fmt.Sprintf("%d targets released", n))
}

// blindTargets fails to find the targets that a Gate holds.
type blindTargets struct{ view.TargetReader }

// HeldBy implements TargetReader.
func (blindTargets) HeldBy(context.Context, string) ([]*target.Object, error) {
	return nil, errBroken
}

func TestRequestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resumed := w.NewKustomization("resumed", nil)
	w.NewKustomization("held", nil)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{all()}})
	w.Reconcile(g)
	w.Resume(resumed)
	w.Reconcile(g)
	w.Events.Take("")

	// The status cannot be written at first, but each event is emitted once. Held targets have events, resumed ones have none.
	w.Open(g, start)
	w.Writes.Before = once("patch-status Gate", func() error { return errBroken })
	if _, err := w.Try(g); err == nil {
		t.Error("the status was written")
	}
	w.Reconcile(g)
	var about []string
	for _, event := range w.Events.Take("") {
		about = append(about, strings.Fields(event)[1]+" "+strings.TrimSuffix(strings.Fields(event)[2], ":"))
	}
	slices.Sort(about)
	want := []string{
		"Gate/production OpenRequested", "Gate/production RequestAccepted", "Kustomization/held GateOpened", "Kustomization/held RequestAccepted",
	}
	if !slices.Equal(about, want) || !isOpened(g) {
		t.Errorf("%s, events %q, want %q", opened(g), about, want)
	}

	// If the held targets are unknown, there is only an event on the Gate.
	w.Targets = blindTargets{w.Targets}
	w.Close(g, w.In(time.Minute))
	_, err := w.Reconcilers().Gates.Reconcile(w.Context(), requestFor(g))
	w.Must(err)
	if got := w.Events.Take("RequestAccepted"); len(got) != 1 || !strings.Contains(got[0], "Gate/production") {
		t.Errorf("events %q", got)
	}
}

func TestLimitedReleaseReportsEachSlot(t *testing.T) {
	w, g, _ := pacedWorld(t)
	w.In(time.Minute)
	w.request(g, "open", w.FakeClock.Now(), "alice", "release")
	var told []string
	for i := range 4 {
		w.In(time.Minute + time.Duration(i)*30*time.Second)
		w.Events.Take("")
		w.Reconcile(g)
		got := w.Events.TakeMetadata(t, " GateOpened: ", ksGroup)
		told = append(told, got["requestedBy"]+" "+got["message"]+" "+got["state"]+" "+got["gate"])
	}
	equal(t, told, slices.Repeat([]string{"alice release opened " + key(g)}, 4))
	w.Reconcile(g)
	equal(t, w.Events.Take(""), []string(nil))
}

func TestExceptionEventsNameExceptionAndGate(t *testing.T) {
	w := newWorld(t)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	e := w.exception("fix", openingIt, 0, time.Hour)
	w.Events.Take("")
	w.reportOn(e)
	w.reportOn(e)
	got := w.Events.TakeMetadata(t, "Normal Gate/production ExceptionActivated: ", ourGroup)
	equal(t, got, map[string]string{"gate": key(g), "exception": "fix", "reason": "ExceptionActivated", "token": "2026-11-23T12:00:00Z"})
}

func TestRefusedValueIsTruncatedInEvent(t *testing.T) {
	w := newWorld(t)
	g := w.ClosedGate("production")
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, strings.Repeat("x", 100_000))
	w.Reconcile(g)
	if got := w.Events.Take("RequestRefused"); len(got) != 1 || len(got[0]) > 300 {
		t.Errorf("%d events, the first of %d bytes", len(got), len(got[0]))
	}
}

// TestThroughTheCaches runs the cases that need a manager with its caches and watches, one after another.
func TestThroughTheCaches(t *testing.T) {
	shared := &recorder{}
	startManager(t, cluster, func(r *controllers.Gating) {
		r.EventRecorder, r.Stamped = shared, func(context.Context) (bool, error) { return true, nil }
	})
	for name, run := range map[string]func(*testing.T, *world){
		"mode Audit": auditThroughTheCaches, "an announcement": announcementThroughTheCaches, "an approval": approvalThroughTheCaches,
		"one event for each transition": transitionsThroughTheCaches, "dependencies": dependenciesThroughTheCaches, "the status of another leader": conflictingStatusThroughTheCaches,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Events = shared
			shared.Take("")
			run(t, w)
		})
	}
}

// transitionsThroughTheCaches is a case of TestThroughTheCaches: each transition has one event on the Gate and one on its target.
func transitionsThroughTheCaches(t *testing.T, w *world) {
	const times = 12
	for name, targets := range map[string][]v1alpha1.TargetReference{"toggled": {named("toggled")}, "idle": nil} {
		app := w.NewKustomization(name, nil)
		w.Events.Take("")
		g := w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: targets})
		for i := range times {
			state := []v1alpha1.State{v1alpha1.StateOpened, v1alpha1.StateClosed}[i%2]
			if i > 0 {
				w.Edit(g, func() { g.Spec.Default = state })
			}
			// A Gate is Reconciling until its events are emitted.
			w.soonStatus(g, fmt.Sprintf("change %d is done", i), func(g *v1alpha1.Gate) bool {
				return g.Status.ObservedGeneration == g.Generation && !conditions.IsReconciling(g) && w.Suspended(app) == (len(targets) > 0 && state == v1alpha1.StateClosed)
			})
		}
		if len(targets) > 0 {
			w.soonHeld(app, g) // the event comes after the hold, and before the condition
		}
		got := map[string]int{}
		for _, event := range w.Events.Take("/" + name + " ") { // other tests have Gates in this cluster, too
			reason, _, _ := strings.Cut(event, ":")
			got[reason]++
		}
		want := map[string]int{"Normal Gate/" + name + " Default": times}
		if len(targets) > 0 {
			want["Normal Kustomization/"+name+" GateClosed"], want["Normal Kustomization/"+name+" GateOpened"] = times/2, times/2-1
		}
		equal(t, got, want)
	}
}
