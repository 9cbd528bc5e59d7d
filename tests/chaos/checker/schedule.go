package checker

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// gate is a Gate with all inputs of its decision.
type gate struct {
	v1alpha1.Gate
	// requests are all requests that were ever accepted.
	requests   []Request
	exceptions []v1alpha1.GateException
}

func (g *gate) key() string { return g.Namespace + "/" + g.Name }

// decide returns the state of a Gate at an instant, and the reason.
func (g *gate) decide(at time.Time) (v1alpha1.State, string) {
	r, requested := g.last(g.at(at))
	requested = requested && at.Before(g.end(r))
	switch {
	case requested && r.Action == v1alpha1.RequestClose:
		return v1alpha1.StateClosed, "CloseRequested"
	case g.closePeriod(at, true):
		return v1alpha1.StateClosed, "ClosePeriod"
	case requested:
		return v1alpha1.StateOpened, "OpenRequested"
	}
	return g.byItself(at)
}

// byItself returns the state of a Gate without requests.
func (g *gate) byItself(at time.Time) (v1alpha1.State, string) {
	switch {
	case g.closePeriod(at, true):
		return v1alpha1.StateClosed, "ClosePeriod"
	case g.Spec.NotBefore != nil && at.Before(g.Spec.NotBefore.Time):
		return v1alpha1.StateClosed, "NotYetActive"
	case g.Spec.NotAfter != nil && !at.Before(g.Spec.NotAfter.Time):
		return v1alpha1.StateClosed, "Expired"
	}
	for _, e := range g.applying(at) {
		inside := func(p v1alpha1.Period) bool { return in(p, at) }
		switch {
		case slices.ContainsFunc(e.Spec.ClosePeriods, inside):
			return v1alpha1.StateClosed, "Exception"
		case slices.ContainsFunc(e.Spec.OpenPeriods, inside):
			return v1alpha1.StateOpened, "Exception"
		case e.Spec.Default != "":
			return e.Spec.Default, "Exception"
		}
	}
	switch {
	case g.closePeriod(at, false):
		return v1alpha1.StateClosed, "ClosePeriod"
	case slices.ContainsFunc(g.Spec.OpenPeriods, func(p v1alpha1.Period) bool { return in(p, at) }):
		return v1alpha1.StateOpened, "OpenPeriod"
	case len(g.Spec.OpenPeriods) > 0:
		return v1alpha1.StateClosed, "OutsideOpenPeriods"
	case len(g.Spec.ClosePeriods) > 0 && g.Spec.Default == v1alpha1.StateOpened:
		return v1alpha1.StateOpened, "OutsideClosePeriods"
	}
	return g.Spec.Default, "Default"
}

// was returns the state of a Gate without requests at an instant.
func (g *gate) was(at time.Time) v1alpha1.State {
	state, _ := g.byItself(at)
	return state
}

// closePeriod returns whether an instant is in a close period, and whether in a hard one.
func (g *gate) closePeriod(at time.Time, hard bool) bool {
	return slices.ContainsFunc(g.Spec.ClosePeriods, func(p v1alpha1.ClosePeriod) bool {
		return in(p.Period, at) && (!hard || p.Override == v1alpha1.OverrideDeny)
	})
}

// in returns whether an instant is in a dated period, the only form that the walk uses.
func in(p v1alpha1.Period, at time.Time) bool {
	return !at.Before(p.From.Time()) && at.Before(p.Until.Time())
}

// applying returns the exceptions that apply at an instant: those that only close, and then the newest of the others. Of two from the same
// second, the first by name counts as newer.
func (g *gate) applying(at time.Time) (found []*v1alpha1.GateException) {
	for i := range g.exceptions {
		e := &g.exceptions[i]
		if e.Spec.GateRef.Name == g.Name && e.Namespace == g.Namespace && e.DeletionTimestamp.IsZero() &&
			!at.Before(e.Spec.ValidFrom.Time) && at.Before(e.Spec.ValidUntil.Time) {
			found = append(found, e)
		}
	}
	opens := func(e *v1alpha1.GateException) int {
		if len(e.Spec.OpenPeriods) > 0 || e.Spec.Default == v1alpha1.StateOpened {
			return 1
		}
		return 0
	}
	slices.SortFunc(found, func(a, b *v1alpha1.GateException) int {
		return cmp.Or(opens(a)-opens(b), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	decides := slices.IndexFunc(found, func(e *v1alpha1.GateException) bool { return opens(e) > 0 })
	if decides < 0 {
		return found
	}
	return found[:decides+1]
}

// edges returns all later instants at which the state may change, in order.
func (g *gate) edges(after time.Time) []time.Time {
	var all []time.Time
	add := func(at time.Time) {
		if at.After(after) {
			all = append(all, at)
		}
	}
	period := func(p v1alpha1.Period) { add(p.From.Time()); add(p.Until.Time()) }
	for _, p := range g.Spec.OpenPeriods {
		period(p)
	}
	for _, p := range g.Spec.ClosePeriods {
		period(p.Period)
	}
	for _, r := range g.requests {
		add(r.At)
		add(g.end(r))
	}
	for _, e := range g.exceptions {
		add(e.Spec.ValidFrom.Time)
		add(e.Spec.ValidUntil.Time)
		for _, p := range slices.Concat(e.Spec.OpenPeriods, e.Spec.ClosePeriods) {
			period(p)
		}
	}
	if g.Spec.NotBefore != nil {
		add(g.Spec.NotBefore.Time)
	}
	if g.Spec.NotAfter != nil {
		add(g.Spec.NotAfter.Time)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// next returns the next change of state, zero if there is none in nine years.
func (g *gate) next(now time.Time) (time.Time, v1alpha1.State) {
	state, _ := g.decide(now)
	for _, at := range g.edges(now) {
		if s, _ := g.decide(at); s != state && at.Before(now.Add(9*365*24*time.Hour)) {
			return at, s
		}
	}
	return time.Time{}, ""
}
