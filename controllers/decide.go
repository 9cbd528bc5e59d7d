package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

const (
	// shownWithin is the precision of the clock of the API server, as its answers show
	// it: cut off, never rounded up.
	shownWithin = time.Second

	// soonest and latest bound how long to wait for an instant that the clock of the API
	// server reaches within its second.
	soonest = 5 * time.Millisecond
	latest  = 100 * time.Millisecond

	// apart is how far clocks are apart that it is worth to tell.
	apart = 500 * time.Millisecond

	// clocksDiffer ends the message of a Gate that is closed for it.
	clocksDiffer = ", " + gate.ClocksDiffer
)

var errTimeUnknown = errors.New("the API server does not say what time it is")

// Decider decides what a Gate is.
type Decider struct {
	// Clock is read when something has taken a while.
	Clock clock.PassiveClock
	// ServerTime asks the API server for the time, cut off to the second. A Gate opens
	// only if it is open at that time, too. Nil means that Clock alone counts.
	ServerTime func(context.Context) (time.Time, error)
	// ServerClock says by how much Clock is behind that of the API server: a Gate closes by the later of the two. Nil means that it is not.
	ServerClock *ServerClock
	// Dependencies reads the dependencies of Gates.
	Dependencies *DependencyReader
	// Stamped returns whether the API server stamps who opens Gates and who approves that. Nil means that it does not.
	Stamped func(context.Context) (bool, error)
	// Skew is by how much Clock was ahead of that of the API server, negative if it was behind.
	Skew *prometheus.GaugeVec
}

// decision is one on a Gate and what came with it.
type decision struct {
	gate.Decision
	// at is the instant of the decision.
	at      time.Time
	handled []ledger.Request
	// stamps is what is known of who asks and approves.
	stamps ledger.Stamps
	// edges are when to decide again, by the clock of this process.
	edges []time.Time
	// proceeds says that a person has newly asked the release to go on.
	proceeds bool
	// looked says that the dependencies of the Gate were looked at, and faults what came of it.
	looked bool
	faults []fault
	// err is what kept the Gate from opening.
	err error
}

// decideOn returns the decision of a snapshot on another state of its Gate, and when to decide again.
func decideOn(s *gate.Snapshot, obj *v1alpha1.Gate, at time.Time) gate.Decision {
	d := s.With(obj).Decide(at)
	if age := at.Add(calendarAge); len(s.Calendars) > 0 && (d.Recheck.IsZero() || age.Before(d.Recheck)) {
		d.Recheck = age // calendars are read only so far ahead
	}
	return d
}

func (v *decision) decide(d gate.Decision) {
	v.Decision, v.edges = d, []time.Time{d.Recheck}
	if d.Next != nil {
		v.edges = append(v.edges, d.Next.At.Time)
	}
	if v.stamps == ledger.StampsUnknown {
		v.edges = append(v.edges, v.at.Add(stampsRetry))
	}
}

// decide takes note of requests and decides. A Gate that is closed even if all objects
// that it watches are ready does not wait for them: it closes first. One that opens does so
// on what was read just now, and by two clocks.
func (r *Decider) decide(ctx context.Context, obj *v1alpha1.Gate, s *gate.Snapshot, now time.Time) decision {
	before := obj.DeepCopy()
	stamps := r.stamps(ctx, obj)
	v := decision{at: now, handled: gate.ApplyRequests(obj, stamps, now), stamps: stamps}
	if len(obj.Spec.DependsOn) > 0 {
		ready := s.With(obj).DecideIfReady(now)
		if ready.State == v1alpha1.StateClosed {
			v.decide(decideOn(s, obj, now))
			return v
		}
		limited, cancel := untilClosing(ctx, ready, now)
		defer cancel()
		var remembered bool
		v.looked = true
		v.faults, remembered = r.Dependencies.observe(limited, obj, now, false)
		if remembered && opens(before, decideOn(s, obj, now).State, v.handled, now) {
			v.faults, _ = r.Dependencies.observe(limited, obj, now, true)
		}
		if next := ready.Next; next != nil && !r.Clock.Now().Before(next.At.Time) {
			before.Status.DeepCopyInto(&obj.Status)
			return r.decide(ctx, obj, s, r.Clock.Now())
		}
	} else {
		v.looked = true
		r.Dependencies.observe(ctx, obj, now, false)
	}
	v.decide(decideOn(s, obj, now))
	if r.ServerTime != nil && opens(before, v.State, v.handled, now) {
		r.witness(ctx, before, obj, s, &v)
	}
	r.closeByServer(obj, s, &v)
	return v
}

const (
	// stampsPatience bounds how long the question for stamps keeps a close waiting.
	stampsPatience = 2 * time.Second
	// stampsRetry is when to ask again.
	stampsRetry = time.Second
)

// stamps asks the API server whether it stamps names, if anything new of a Gate depends on that.
func (r *Decider) stamps(ctx context.Context, obj *v1alpha1.Gate) ledger.Stamps {
	if r.Stamped == nil || !ledger.NeedsStamps(obj) {
		return ledger.Unstamped
	}
	limited, cancel := context.WithTimeout(ctx, stampsPatience)
	defer cancel()
	switch stamped, err := r.Stamped(limited); {
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell whether the API server stamps identities; deferring new requests")
		return ledger.StampsUnknown
	case stamped:
		return ledger.Stamped
	}
	return ledger.Unstamped
}

// untilClosing returns a context that ends when a Gate closes even if all its dependencies are ready.
func untilClosing(ctx context.Context, ready gate.Decision, now time.Time) (context.Context, context.CancelFunc) {
	if ready.Next == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, ready.Next.At.Sub(now))
}

// missedEdges returns whether the Gate changed its state and changed it back
// while nobody looked.
func missedEdges(before *v1alpha1.Gate, state v1alpha1.State, now time.Time) bool {
	due := before.Status.NextTransition
	return due != nil && !due.At.After(now) && due.State != state
}

// opens returns whether a Gate opens with a state at an instant. It was not open. Or it was
// due to close and open again since it was looked at, also if nobody knew the time then.
// Or somebody asks for something new, and what that closes may be over by one clock only.
func opens(before *v1alpha1.Gate, state v1alpha1.State, handled []ledger.Request, now time.Time) bool {
	return state == v1alpha1.StateOpened && (!conditions.IsTrue(before, v1alpha1.OpenedCondition) || missedEdges(before, state, now) ||
		len(handled) > 0 || before.Generation != before.Status.ObservedGeneration ||
		conditions.GetReason(before, meta.ReadyCondition) == v1alpha1.TimeUnknownReason)
}

// witness has a Gate that is about to open stay what it is at the time that the API
// server shows, unless it is open at that time as well. The clock of this process may
// be ahead, and another replica would not agree. If nobody knows what time it is, the
// Gate stays what it was.
func (r *Decider) witness(ctx context.Context, before, obj *v1alpha1.Gate, s *gate.Snapshot, v *decision) {
	asked := r.Clock.Now()
	shown, err := r.ServerTime(ctx)
	if err != nil {
		if !conditions.IsTrue(before, v1alpha1.OpenedCondition) {
			v.Decision = v.Withheld()
		}
		v.err = fmt.Errorf("%w: %w", errTimeUnknown, err)
		return
	}
	skew := skewOf(asked, shown, r.Clock.Now())
	r.Skew.WithLabelValues().Set(skew.Seconds())

	then := obj.DeepCopy()
	before.Status.DeepCopyInto(&then.Status)
	then.Status.Dependencies = obj.Status.Dependencies
	handled := gate.ApplyRequests(then, v.stamps, reached(shown, v.at))
	at, d := shown, decideOn(s, then, shown)
	for d.State == v1alpha1.StateOpened && d.Next != nil && !d.Next.At.After(v.at) {
		at = d.Next.At.Time // what that clock has not seen yet is not over
		d = decideOn(s, then, at)
	}
	if d.State == v1alpha1.StateOpened {
		return
	}
	obj.Status = then.Status
	edges := v.edges
	v.decide(d)
	for _, edge := range v.edges {
		if edge.After(at) {
			edges = append(edges, asked.Add(untilShown(edge, shown, asked)))
		}
	}
	v.at, v.handled, v.edges = at, handled, edges
	said := strings.HasSuffix(conditions.GetMessage(before, v1alpha1.OpenedCondition), clocksDiffer)
	if !said && skew.Abs() < apart {
		return
	}
	v.Message += clocksDiffer
	if !said {
		ctrl.LoggerFrom(ctx).Info("Gate stays closed until the clock of the API server says that it is open, too",
			"gate", client.ObjectKeyFromObject(obj).String(), "clock", asked.UTC(), "server", shown.UTC(), "ahead", skew.String())
	}
}

// reached returns the latest instant that the clock of the API server may have reached
// when it was shown, not later than now if that is possible: a request of this very
// second is not one for later. The next opening begins at the next full second.
func reached(shown, now time.Time) time.Time {
	switch last := shown.Add(shownWithin - 1); {
	case now.Before(shown):
		return shown
	case now.After(last):
		return last
	}
	return now
}

// skewOf returns how far a clock is ahead of that of the API server at least, negative
// if it is behind. The latter was shown between two readings of the former.
func skewOf(before, shown, after time.Time) time.Duration {
	if ahead := before.Sub(shown) - shownWithin; ahead > 0 {
		return ahead
	}
	return min(after.Sub(shown), 0)
}

// untilShown returns how long to wait until the clock of the API server may have reached
// an instant that it had not when it was shown. In its last second nobody knows how far
// that is, but it is not farther than the own clock is ahead. So the first wait is short
// if the clocks are nearly in step, and each is as long as all before it together.
func untilShown(at, shown, now time.Time) time.Duration {
	left := at.Sub(shown)
	switch {
	case left > shownWithin:
		return left - shownWithin
	case now.Before(at):
		return left
	}
	return min(max(now.Sub(at), soonest), latest)
}

// lookLater evaluates the dependencies of a Gate and decides again, if decide skipped them because the Gate is closed
// even with all of them ready.
func (r *Decider) lookLater(ctx context.Context, obj *v1alpha1.Gate, s *gate.Snapshot, v *decision) {
	if v.looked {
		return
	}
	v.looked = true
	v.faults, _ = r.Dependencies.observe(ctx, obj, v.at, false)
	v.decide(decideOn(s, obj, v.at))
}
