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

func TestOfARequestAHundredHeldTargetsHearInOrder(t *testing.T) {
	w := newWorld(t)
	for i := range events.MaxTargetEvents + 1 {
		w.NewKustomization(fmt.Sprintf("app-%03d", i), nil)
	}
	g := w.ClosedGate("production", all())
	w.Reconcile(g)
	w.Events.Take("")
	w.request(g, "open", start.Add(time.Hour), "alice", "planned")
	w.Reconcile(g)
	want := make([]string, events.MaxTargetEvents)
	for i := range want {
		want[i] = fmt.Sprintf("Normal Kustomization/app-%03d RequestPlanned: Request for gate '%s': open requested at 2026-11-23T13:00:00Z by alice: planned", i, key(g))
	}
	equal(t, w.Events.Take("Kustomization"), want)
	w.Reconcile(g)
	equal(t, w.Events.Take(""), []string(nil))
}

// blindTargets do not know what a Gate holds.
type blindTargets struct{ view.TargetReader }

// HeldBy implements TargetReader.
func (blindTargets) HeldBy(context.Context, string) ([]*target.Object, error) {
	return nil, errBroken
}

func TestEventsOfARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resumed := w.NewKustomization("resumed", nil)
	w.NewKustomization("held", nil)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{all()}})
	w.Reconcile(g)
	w.Resume(resumed)
	w.Reconcile(g)
	w.Events.Take("")

	// The status cannot be written at first: each event is emitted once. Held targets have events, resumed ones have none.
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

	// The held targets are unknown: there is an event on the Gate.
	w.Targets = blindTargets{w.Targets}
	w.Close(g, w.In(time.Minute))
	_, err := w.Reconcilers().Gates.Reconcile(w.Context(), requestFor(g))
	w.Must(err)
	if got := w.Events.Take("RequestAccepted"); len(got) != 1 || !strings.Contains(got[0], "Gate/production") {
		t.Errorf("events %q", got)
	}
}

func TestAPacedReleaseIsToldInEachTurn(t *testing.T) {
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

func TestEventsOfAnExceptionNameItAndItsGate(t *testing.T) {
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

func TestARefusedValueIsNotToldAtLength(t *testing.T) {
	w := newWorld(t)
	g := w.ClosedGate("production")
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, strings.Repeat("x", 100_000))
	w.Reconcile(g)
	if got := w.Events.Take("RequestRefused"); len(got) != 1 || len(got[0]) > 300 {
		t.Errorf("%d events, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestOneEventForEachTransitionThroughTheCaches(t *testing.T) {
	const times = 20
	events := &recorder{}
	startManager(t, cluster, func(r *controllers.Gating) { r.EventRecorder = events })
	for name, targets := range map[string][]v1alpha1.TargetReference{"toggled": {named("toggled")}, "idle": nil} {
		w := newWorld(t)
		app := w.NewKustomization(name, nil)
		events.Take("")
		g := w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: targets})
		for i := range times {
			state := []v1alpha1.State{v1alpha1.StateOpened, v1alpha1.StateClosed}[i%2]
			if i > 0 {
				w.Edit(g, func() { g.Spec.Default = state })
			}
			// A Gate is Reconciling until it has told what it is.
			w.soonStatus(g, fmt.Sprintf("change %d is done", i), func(g *v1alpha1.Gate) bool {
				return g.Status.ObservedGeneration == g.Generation && !conditions.IsReconciling(g) && w.Suspended(app) == (len(targets) > 0 && state == v1alpha1.StateClosed)
			})
		}
		if len(targets) > 0 {
			w.soonHeld(app, g) // the event comes after the hold, and before the condition
		}
		told := map[string]int{}
		for _, event := range events.Take("/" + name + " ") { // others are in the cluster
			reason, _, _ := strings.Cut(event, ":")
			told[reason]++
		}
		want := map[string]int{"Normal Gate/" + name + " Default": times}
		if len(targets) > 0 {
			want["Normal Kustomization/"+name+" GateClosed"], want["Normal Kustomization/"+name+" GateOpened"] = times/2, times/2-1
		}
		equal(t, told, want)
	}
}
