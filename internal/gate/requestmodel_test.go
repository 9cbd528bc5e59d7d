package gate_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// gateState is a request as the model keeps it: for ever.
type gateState struct {
	action  v1alpha1.RequestAction
	who     string
	webhook bool
	at, end time.Time
	// seen is when the controller saw it, and when it began unless it was planned.
	seen time.Time
	// withdraws says that it only ends others.
	withdraws bool
	// late is 1 if others have approved it after its time: then it comes after all that begins at once.
	late int
}

func (r gateState) begins() time.Time {
	if r.at.After(r.seen) {
		return r.at
	}
	return r.seen
}

func (r gateState) lasts(at time.Time) bool { return r.end.IsZero() || at.Before(r.end) }

// refuses returns whether a close in force refuses an open request.
func (r gateState) refuses(open gateState) bool {
	switch {
	case r.action != v1alpha1.RequestClose || !r.lasts(open.begins()):
		return false
	case open.webhook && !r.webhook, !open.at.After(r.at), r.seen.After(open.seen):
		return true
	}
	return r.seen.Equal(open.seen) && !open.isLater(r)
}

// isLater returns whether a request certainly came after another one, if both were seen at once.
func (r gateState) isLater(other gateState) bool {
	apart := time.Minute
	if r.webhook && other.webhook {
		apart = 0
	}
	return r.at.After(other.at.Add(apart))
}

// model plays all requests that were ever accepted.
type model []gateState

// stateAt returns the state of a Gate at an instant.
func (m model) stateAt(at time.Time, byDefault v1alpha1.State) v1alpha1.State {
	state := byDefault
	for _, r := range m.inForce(at) {
		switch {
		case !r.lasts(at):
		case r.action == v1alpha1.RequestClose:
			return v1alpha1.StateClosed
		default:
			state = v1alpha1.StateOpened
		}
	}
	return state
}

// inForce returns the requests that have begun at an instant and that no other one has ended. They may be over.
func (m model) inForce(at time.Time) (inForce []gateState) {
	all := slices.Clone(m)
	slices.SortStableFunc(all, func(a, b gateState) int {
		if order := cmp.Or(a.begins().Compare(b.begins()), cmp.Compare(a.late, b.late), a.seen.Compare(b.seen)); order != 0 {
			return order
		}
		if a.action == v1alpha1.RequestOpen && a.isLater(b) {
			return 1
		}
		if b.action == v1alpha1.RequestOpen && b.isLater(a) {
			return -1
		}
		return -cmp.Compare(a.action, b.action) // the close comes last, and stays
	})
	for _, r := range all {
		switch {
		case r.begins().After(at):
		case r.action == v1alpha1.RequestClose:
			inForce = append(slices.DeleteFunc(inForce, func(o gateState) bool { return o.action == v1alpha1.RequestOpen }), r)
		case r.withdraws && !ends(inForce, r):
		case !slices.ContainsFunc(inForce, func(c gateState) bool { return c.refuses(r) }):
			inForce = []gateState{r}
		}
	}
	return inForce
}

// forEver is drawn for a request without end: an open without a duration, and a close that is unlimited.
const forEver = 1000 * time.Hour

// valueFor returns the value of an annotation for a request that lasts for a while.
func valueFor(action v1alpha1.RequestAction, at time.Time, lasts time.Duration) string {
	switch {
	case lasts != forEver:
		return stamp(at) + "/" + lasts.String()
	case action == v1alpha1.RequestClose:
		return ledger.FormatUnlimited(at)
	}
	return stamp(at)
}

// endOf returns when a request ends whose own duration, if it has one, ends it at r.end.
func endOf(r gateState, window *v1alpha1.Duration) time.Time {
	endless := r.end.Equal(r.at.Add(forEver))
	switch {
	case window != nil && (r.end.IsZero() || r.action == v1alpha1.RequestOpen && r.lasts(r.at.Add(window.Duration))):
		return r.at.Add(window.Duration)
	case endless:
		return time.Time{}
	}
	return r.end
}

// ends returns whether another request ends one of some requests in force.
func ends(inForce []gateState, r gateState) bool {
	return slices.ContainsFunc(inForce, func(o gateState) bool { return o.action != r.action && o.lasts(r.begins()) })
}

// add remembers an accepted request, in place of the plan that it moves.
func (m model) add(r gateState) model {
	if r.withdraws && !ends(m.inForce(r.seen), r) {
		m = slices.DeleteFunc(m, func(o gateState) bool {
			return o.begins().After(r.seen) && o.action != r.action && (o.action == v1alpha1.RequestOpen || o.who == r.who)
		})
	}
	return append(slices.DeleteFunc(m, func(o gateState) bool {
		return r.at.After(r.seen) && o.at.After(r.seen) && o.action == r.action && (r.action == v1alpha1.RequestOpen || o.who == r.who)
	}), r)
}

// The product forgets what it takes for needless, the model nothing. Requests are planned or
// not, of people and of webhooks, and sometimes two are new at once.
func TestDroppedRequestsHaveNoEffect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, now := opened(), noon
		if rapid.Bool().Draw(t, "closed by default") {
			g = closed()
		}
		if rapid.Bool().Draw(t, "has a window") {
			g.Spec.Window = duration(2 * time.Hour)
		}
		byDefault := g.Spec.Default
		var m model
		draw := func(action v1alpha1.RequestAction) gateState {
			r := gateState{action: action, seen: now, webhook: rapid.Bool().Draw(t, "webhook")}
			r.who = rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "who")
			r.at = now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds behind")) * time.Second)
			if r.webhook {
				r.who = "GateReceiver ops/ci"
			} else if rapid.Bool().Draw(t, "planned") {
				r.at = now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "half hours ahead")) * 30 * time.Minute)
			}
			value := stamp(r.at)
			if r.withdraws = !r.webhook && !r.at.After(now) && rapid.IntRange(0, 3).Draw(t, "withdraws") == 0; r.withdraws {
				r.end = r.at
				annotate(g, action, stamp(r.at)+"/0s")
				by(g, action, r.who, "")
				return r
			}
			if own := rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour, 5 * time.Hour, forEver}).Draw(t, "for"); own > 0 {
				value, r.end = valueFor(action, r.at, own), r.at.Add(own)
			}
			r.end = endOf(r, g.Spec.Window)
			annotate(g, action, value)
			by(g, action, r.who, "")
			return r
		}
		for range rapid.IntRange(1, 14).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(61, 3000).Draw(t, "seconds later")) * time.Second)
			asked := map[v1alpha1.RequestAction]gateState{}
			for _, action := range rapid.SampledFrom([][]v1alpha1.RequestAction{
				{v1alpha1.RequestOpen}, {v1alpha1.RequestClose}, {v1alpha1.RequestClose, v1alpha1.RequestOpen}, {},
			}).Draw(t, "actions") {
				asked[action] = draw(action)
			}
			for _, handled := range handle(g, now) {
				r, isNew := asked[handled.Action]
				isNew = isNew && handled.Value == g.Annotations[handled.Annotation] && handled.At.Equal(r.at)
				switch {
				case handled.Err == nil && isNew:
					m = m.add(r)
				case handled.Err != nil && isNew && r.action == v1alpha1.RequestClose && !r.withdraws:
					t.Fatalf("a close is refused: %v", handled.Err)
				}
			}
			if d := gate.Decide(g, now); d.State != m.stateAt(now, byDefault) {
				t.Fatalf("at %s it is %s: %s\naccepted %+v\nremembered %+v", stamp(now), d.State, d.Message, m, g.Status.Requests)
			}
		}
		// Planned requests come to pass as well.
		for range 16 {
			now = now.Add(29 * time.Minute)
			handle(g, now)
			if d := gate.Decide(g, now); d.State != m.stateAt(now, byDefault) {
				t.Fatalf("later, at %s, it is %s: %s\naccepted %+v\nremembered %+v", stamp(now), d.State, d.Message, m, g.Status.Requests)
			}
		}
	})
}
