package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
)

const (
	ourGroup = "gating.toolkit.fluxcd.io"
	ksGroup  = "kustomize.toolkit.fluxcd.io"
)

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
