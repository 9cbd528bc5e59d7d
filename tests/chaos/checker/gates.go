package checker

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// gate checks the status of a Gate.
func (c *check) gate(g *gate) {
	if g.Spec.Suspend || !g.DeletionTimestamp.IsZero() {
		return
	}
	fail := func(format string, args ...any) { c.fail("gate %s: %s", g.key(), fmt.Sprintf(format, args...)) }
	state, reason := g.decide(c.now)
	want := map[v1alpha1.State]metav1.ConditionStatus{v1alpha1.StateOpened: metav1.ConditionTrue, v1alpha1.StateClosed: metav1.ConditionFalse}[state]
	if opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition); opened == nil || opened.Status != want || opened.Reason != reason {
		fail("Opened is %v, want %s %s", opened, want, reason)
	}
	if g.Status.ObservedGeneration != g.Generation {
		fail("generation %d was observed, not %d", g.Status.ObservedGeneration, g.Generation)
	}
	at, state := g.next(c.now)
	if next := g.Status.NextTransition; (next == nil) != at.IsZero() || next != nil && (!next.At.Time.Equal(at) || next.State != state) {
		fail("nextTransition is %v, want %s at %s", next, state, at)
	}
	c.requests(g, fail)
	c.counts(g, fail)
}

// requests checks that no request was lost or counted twice.
func (c *check) requests(g *gate, fail func(string, ...any)) {
	for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
		value, ok := g.Annotations[string(action)+".gate.fluxcd.io/requestedAt"]
		if ok && !handles(&g.Gate, action, value) {
			fail("the request to %s of %s was not handled: %v", action, value, g.Status.Requests)
		}
	}
	equal := func(a *metav1.Time, b time.Time) bool { return a != nil && a.Time.Equal(b) }
	state := g.at(c.now)
	r, requested := g.last(state)
	if !requested {
		if g.Status.RequestedAt != nil || g.Status.ResetToDefaultAt != nil {
			fail("requestedAt is %v and resetToDefaultAt %v, but there was no request", g.Status.RequestedAt, g.Status.ResetToDefaultAt)
		}
	} else {
		end := g.end(r)
		forever := end.After(r.At.Add(10 * 365 * 24 * time.Hour))
		want := map[v1alpha1.RequestAction]v1alpha1.State{v1alpha1.RequestOpen: v1alpha1.StateOpened, v1alpha1.RequestClose: v1alpha1.StateClosed}[r.Action]
		if !equal(g.Status.RequestedAt, r.At) {
			fail("requestedAt is %v, the last request is of %s", g.Status.RequestedAt, r.At)
		}
		if g.endedEarly(state, r) && g.was(r.At) == want {
			end, forever = r.At, false
		}
		if forever != (g.Status.ResetToDefaultAt == nil) || !forever && !equal(g.Status.ResetToDefaultAt, end) {
			fail("resetToDefaultAt is %v, the request of %s ends at %s", g.Status.ResetToDefaultAt, r.At, end)
		}
	}
	c.outcomes(g, fail)
}

// counts checks the counts of targets in the status of a Gate, and that it has settled.
func (c *check) counts(g *gate, fail func(string, ...any)) {
	total, held, byOthers, failed, certificates := 0, 0, 0, 0, 0
	state, _ := g.decide(c.now)
	for i := range c.Targets {
		t := &c.Targets[i]
		if !governs(g, t) {
			continue
		}
		total++
		switch {
		case t.GetKind() == certificateKind:
			certificates++
		case state == v1alpha1.StateOpened:
		case ours(t):
			held++
		case suspended(t):
			byOthers++
		}
	}
	for _, ref := range g.Spec.Targets {
		if !c.Kinds[ref.Kind] {
			failed++
		}
	}
	got := g.Status.Targets
	if got == nil || int(got.Total) != total || int(got.Failed) != failed || int(got.Held) < held || int(got.Held) > held+certificates ||
		int(got.SuspendedByOthers) < byOthers || int(got.SuspendedByOthers) > byOthers+certificates {
		fail("targets are %+v, want %d, held %d, suspended by others %d, failed %d, and %d certificates", got, total, held, byOthers, failed, certificates)
	}
	for _, kind := range []string{"Reconciling", "Stalled"} {
		if found := meta.FindStatusCondition(g.Status.Conditions, kind); found != nil {
			fail("it has not settled: %v", found)
		}
	}
	if ready := meta.FindStatusCondition(g.Status.Conditions, "Ready"); ready == nil || (ready.Status == metav1.ConditionTrue) != (failed == 0) {
		fail("Ready is %v, %d failed", ready, failed)
	}
}
