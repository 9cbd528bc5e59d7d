package gate

import (
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// maxAnnouncements is how many changes of the state of a Gate are told in advance: the soonest. The status has room for more, which
// were the soonest before the schedule changed.
const maxAnnouncements = v1alpha1.MaxAnnounced / 2

// Forecast is what is to be told in advance of a Gate at an instant, by its schedule with its requests, exceptions and calendars.
type Forecast struct {
	// Announced is what has been told once all of this is.
	Announced []v1alpha1.Announcement
	// Notices are to be told, the soonest change first.
	Notices []Notice
	// Canceled has been told and does not come.
	Canceled []v1alpha1.Announcement
	// Next is when there is something to tell if nothing changes, zero for never.
	Next time.Time
}

// Notice is a change of the state that is to be told in advance.
type Notice struct {
	v1alpha1.Transition
	// Event names the event of a calendar that decides, empty if none does.
	Event string
	// Instead was announced and does not come, zero if nothing was.
	Instead time.Time
}

// IsEmpty returns whether there is nothing to tell.
func (f *Forecast) IsEmpty() bool { return len(f.Notices)+len(f.Canceled) == 0 }

// Forecast returns what is to be told in advance of a Gate at an instant, if its status says what has been told. A Gate whose spec does not
// compile is left as it is.
func (in *Snapshot) Forecast(now time.Time) Forecast {
	g := in.Gate
	if len(g.Spec.NotifyBefore) == 0 {
		return Forecast{}
	}
	plan, errs := in.Plan(now, now, nil)
	if len(errs) > 0 {
		return Forecast{Announced: g.Status.Memory.Announced}
	}
	f := &forecaster{now: now, state: plan.Decide(now).State, announced: g.Status.Memory.Announced}
	for _, lead := range g.Spec.NotifyBefore {
		f.leads = append(f.leads, lead.Or(0))
	}
	f.collect(plan.Transitions(now))
	if spent := (*schedule.BudgetError)(nil); errors.As(plan.Err(), &spent) {
		f.reached = spent.Reached
	}
	f.announce()
	f.cancel()
	return f.Forecast
}

// forecaster makes a Forecast.
type forecaster struct {
	Forecast
	now       time.Time
	leads     []time.Duration
	announced []v1alpha1.Announcement
	// state is that at now. coming are the changes from then on, as far as they matter.
	state  schedule.State
	coming []schedule.Transition
	// reached is set if the changes from then on are unknown. Those that have been announced stay so.
	reached time.Time
	// fresh are the notices of changes that have not been told before.
	fresh []int
}

// collect takes note of the changes that may be told, of the first after them, and of all until the last one that has been told.
func (f *forecaster) collect(ahead iter.Seq[schedule.Transition]) {
	horizon, last := f.now.Add(slices.Max(f.leads)), time.Time{}
	if n := len(f.announced); n > 0 {
		last = f.announced[n-1].At.Time
	}
	for t := range ahead {
		f.coming = append(f.coming, t)
		if t.At.After(last) && (t.At.After(horizon) || len(f.coming) == maxAnnouncements) {
			return
		}
	}
}

// announce finds what is to be told of the changes to come, and when of the next. A change that is over is kept for as long as the clock of
// another replica may be behind.
func (f *forecaster) announce() {
	var unknown []v1alpha1.Announcement
	for _, a := range f.announced {
		switch {
		case !a.At.After(f.now) && a.At.After(f.now.Add(-ledger.MaxSkew)):
			f.Announced = append(f.Announced, a)
		case f.isUnknown(a):
			unknown = append(unknown, a)
		}
	}
	room := v1alpha1.MaxAnnounced - len(f.Announced) - len(unknown)
	for _, a := range f.announced {
		if f.comes(a) {
			room--
		}
	}
	if len(f.coming) >= maxAnnouncements { // another is among the soonest once the first has come
		f.Next = f.coming[0].At
	}
	for i, t := range f.coming {
		entry, known := f.entry(t)
		due, next := f.due(t, entry.Before.Duration)
		f.scheduleNotice(t, next)
		isNew := !known && due > 0 && i < maxAnnouncements
		if isNew && room <= 0 {
			f.waitForSpace()
			isNew = false
		}
		if isNew {
			room--
			f.fresh = append(f.fresh, len(f.Notices))
		}
		if isNew || known && due > 0 {
			entry.Before.Duration = due
			f.Notices = append(f.Notices, Notice{Transition: *transition(t), Event: t.Event})
		}
		if isNew || known {
			f.Announced = append(f.Announced, entry)
		}
	}
	f.Announced = append(f.Announced, unknown...)
	if !f.reached.IsZero() {
		f.Next = schedule.Earlier(f.Next, f.reached)
	}
}

// isUnknown returns whether an announced change is so far ahead that it is unknown whether it comes.
func (f *forecaster) isUnknown(a v1alpha1.Announcement) bool {
	return !f.reached.IsZero() && !a.At.Time.Before(f.reached)
}

// entry returns what has been told of a change. If that is nothing, it returns an entry for it that has room for each lead.
func (f *forecaster) entry(t schedule.Transition) (entry v1alpha1.Announcement, known bool) {
	if i := slices.IndexFunc(f.announced, func(a v1alpha1.Announcement) bool { return is(a, t) }); i >= 0 {
		return f.announced[i], true
	}
	return v1alpha1.Announcement{At: metav1.NewTime(t.At), State: v1alpha1.State(t.State.String()), Before: v1alpha1.Duration{Duration: math.MaxInt64}}, false
}

// due returns the shortest lead below a bound for which it is time to tell of a change, and the longest for which it is not, zero if there
// is none.
func (f *forecaster) due(t schedule.Transition, below time.Duration) (due, next time.Duration) {
	left := t.At.Sub(f.now)
	for _, lead := range f.leads {
		switch {
		case lead >= below:
		case lead < left:
			next = max(next, lead)
		case due == 0 || lead < due:
			due = lead
		}
	}
	return due, next
}

// waitForSpace computes the next forecast when the first change that is over need not be kept any more.
func (f *forecaster) waitForSpace() {
	if len(f.Announced) > 0 && !f.Announced[0].At.After(f.now) {
		f.Next = schedule.Earlier(f.Next, f.Announced[0].At.Add(ledger.MaxSkew))
	}
}

// scheduleNotice has somebody look again when it is time to tell of a change.
func (f *forecaster) scheduleNotice(t schedule.Transition, lead time.Duration) {
	if lead > 0 {
		f.Next = schedule.Earlier(f.Next, t.At.Add(-lead))
	}
}

// cancel finds what has been told and does not come. A new change to the same state takes its place, and where the Gate has that state
// all the same, nothing is to be said.
func (f *forecaster) cancel() {
	for _, a := range f.announced {
		if !a.At.After(f.now) || f.comes(a) || f.isUnknown(a) {
			continue
		}
		if i := slices.IndexFunc(f.fresh, func(n int) bool { return f.Notices[n].State == a.State }); i >= 0 {
			f.Notices[f.fresh[i]].Instead = a.At.Time
			f.fresh = slices.Delete(f.fresh, i, i+1)
		} else if f.stateAt(a.At.Time) != a.State {
			f.Canceled = append(f.Canceled, a)
		}
	}
}

// stateAt returns the state at an instant, which is not later than the last one that has been told.
func (f *forecaster) stateAt(at time.Time) v1alpha1.State {
	state := f.state
	for _, t := range f.coming {
		if !t.At.After(at) {
			state = t.State
		}
	}
	return v1alpha1.State(state.String())
}

// comes returns whether a change comes that has been told.
func (f *forecaster) comes(a v1alpha1.Announcement) bool {
	return slices.ContainsFunc(f.coming, func(t schedule.Transition) bool { return is(a, t) })
}

// is returns whether an announcement is one of a change.
func is(a v1alpha1.Announcement, t schedule.Transition) bool {
	return a.At.Equal(&metav1.Time{Time: t.At}) && string(a.State) == t.State.String()
}

// transition returns a change of the state in the words of the API.
func transition(t schedule.Transition) *v1alpha1.Transition {
	n := &v1alpha1.Transition{At: metav1.NewTime(t.At), State: v1alpha1.State(t.State.String()), Reason: string(t.Reason)}
	n.Period, n.Exception = Names(n.Reason, t.By)
	return n
}

// Names returns by, the name of what decides for a reason, as the name of a period or of an exception.
func Names(reason, by string) (period, exception string) {
	if reason == v1alpha1.ExceptionAppliesReason {
		return "", by
	}
	return by, ""
}
