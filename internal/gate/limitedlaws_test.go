package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// limited is a request in the model, with targets or for the whole Gate.
type limited struct {
	action  v1alpha1.RequestAction
	at, end time.Time
	targets []string
	value   string
}

func (r *limited) withdraws() bool         { return !r.end.IsZero() && r.end.Equal(r.at) }
func (r *limited) lasts(at time.Time) bool { return r.end.IsZero() || at.Before(r.end) }

func drawLimited(t *rapid.T, at time.Time, i int) limited {
	r := limited{action: rapid.SampledFrom([]v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose}).Draw(t, fmt.Sprintf("action %d", i)), at: at}
	if rapid.IntRange(0, 2).Draw(t, fmt.Sprintf("is limited %d", i)) > 0 {
		r.targets = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID[string]).Draw(t, fmt.Sprintf("targets %d", i))
	}
	minutes := rapid.SampledFrom([]int{0, 20, 90, 300}).Draw(t, fmt.Sprintf("lasts %d", i))
	r.end, r.value = at.Add(time.Duration(minutes)*time.Minute), fmt.Sprintf("%s/%dm", stamp(at), minutes)
	if minutes == 0 {
		r.value = stamp(at) + "/0s"
	}
	if minutes == 300 && r.action == v1alpha1.RequestClose {
		r.end, r.value = time.Time{}, stamp(at)+"/unlimited"
	}
	for _, name := range r.targets {
		r.value += ",only=Kustomization/" + name
	}
	return r
}

// requestOf returns the request that decides the state of a target by the definition. Each request with this target ends earlier requests
// for the opposite action, and so does each request for the whole Gate. It returns nil if the target has the state of the Gate.
func requestOf(name string, all []limited, now time.Time) (by *limited) {
	var open *limited
	var closes []*limited
	for i := range all {
		r := &all[i]
		whole := r.targets == nil
		if !whole && !slices.Contains(r.targets, name) {
			continue
		}
		if r.action == v1alpha1.RequestOpen {
			closes = nil
			if !whole && !r.withdraws() {
				open = r
			}
			continue
		}
		open = nil
		if !whole && !r.withdraws() {
			closes = append(closes, r)
		}
	}
	for _, r := range closes {
		if r.lasts(now) {
			by = r
		}
	}
	if open != nil && open.lasts(now) {
		by = open
	}
	return by
}

func TestLimitedRequestsGiveTargetsTheirDefinedStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGate(t)
		g.Generation, g.Status.ObservedGeneration = 1, 1
		if rapid.IntRange(0, 2).Draw(t, "has a hard freeze") == 0 {
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, closing(drawPeriod(t, "hard"), "Deny"))
		}
		var all []limited
		now := utc(hourly(drawHour(t, "start")))
		for i := range rapid.IntRange(1, 6).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(2, 60).Draw(t, fmt.Sprintf("minutes before %d", i))) * time.Minute)
			r := drawLimited(t, now, i)
			all = append(all, r)
			annotate(g, r.action, r.value)
			handle(g, now)
		}
		now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "minutes later")) * time.Minute)
		after, r := resolved(g, now)
		edge := now.Add(240 * time.Hour)
		for _, at := range r.Rechecks {
			if at.After(now) && at.Before(edge) {
				edge = at
			}
		}
		want := func(name string, at time.Time) v1alpha1.State {
			by := requestOf(name, all, at)
			if by == nil {
				return gate.Decide(g, at).State
			}
			alone := g.DeepCopy()
			alone.Status.Requests, alone.Status.Memory.HandledRequests, alone.Annotations = nil, nil, nil
			value, _, _ := strings.Cut(by.value, ",")
			annotate(alone, by.action, value)
			handle(alone, by.at)
			return gate.Decide(alone, at).State
		}
		scope := verdict.Scope{Reaches: func(string, string) bool { return true }}
		for _, name := range []string{"a", "b", "c", "d"} {
			is := scope.ForTarget(after, kustomization(name))
			for _, at := range []time.Time{now, now.Add(edge.Sub(now) / 2), edge.Add(-1)} {
				if effect := verdict.Governing("", is, at).Effect; (effect == verdict.Open) != (want(name, at) == isOpened) || effect == verdict.Undecided {
					t.Fatalf("%s has effect %d at %s, want %s; requests %+v; overlays %+v", name, effect, at, want(name, at), after.Status.Requests, after.Status.Overlays)
				}
			}
			if effect := verdict.Governing("", is, edge).Effect; effect == verdict.Open && want(name, edge) == isClosed {
				t.Fatalf("%s is released at the next edge %s, although it must be closed; overlays %+v", name, edge, after.Status.Overlays)
			}
		}
	})
}
