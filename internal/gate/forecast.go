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

// maxAnnouncements bounds the changes of the state that are announced, soonest first. The status has space for twice as many, because it
// also keeps changes that were announced before the schedule changed.
const maxAnnouncements = v1alpha1.MaxAnnounced / 2

// Forecast holds the announcements that are due at an instant. They depend on the schedule, requests, exceptions and calendars.
type Forecast struct {
	// Announced lists all announcements in force after this forecast.
	Announced []v1alpha1.Announcement
	// Notices lists the notices that are due, soonest change first.
	Notices []Notice
	// Canceled lists the announced changes that will no longer happen.
	Canceled []v1alpha1.Announcement
	// Next is the time when the next announcement is due if nothing changes, zero if there is none.
	Next time.Time
}

// Notice announces a change of the state.
type Notice struct {
	v1alpha1.Transition
	// Event is the name of the calendar event that causes the change, empty if none does.
	Event string
	// Instead is the time of an announced change that this one replaces, zero if there is none.
	Instead time.Time
}

// IsEmpty returns whether no announcement is due.
func (f *Forecast) IsEmpty() bool { return len(f.Notices)+len(f.Canceled) == 0 }

// Forecast returns the announcements that are due at an instant, based on the announcements in the status. If the spec is invalid, it keeps
// them unchanged.
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

// forecaster computes a Forecast.
type forecaster struct {
	Forecast
	now       time.Time
	leads     []time.Duration
	announced []v1alpha1.Announcement
	// state is the current state of the Gate. coming lists the next changes, see collect.
	state  schedule.State
	coming []schedule.Transition
	// reached is the instant at which the search for changes stopped early, zero if it was complete. Announcements of later changes are kept.
	reached time.Time
	// fresh lists the indices of the notices whose changes are announced for the first time.
	fresh []int
}

// collect sets coming to the next changes. It includes every change up to the last announced one, and then continues until a change is
// beyond the longest lead or there are maxAnnouncements changes.
func (f *forecaster) collect(ahead iter.Seq[schedule.Transition]) {
	horizon, last := f.now.Add(slices.Max(f.leads)), time.Time{}
	if n := len(f.announced); n > 0 {
		last = f.announced[n-1].At.Time
	}
	for t := range ahead {
		f.coming = append(f.coming, t)
		if t.At.After(last) && (t.At.After(horizon) || len(f.coming) >= maxAnnouncements) {
			return
		}
	}
}

// announce sets Announced, Notices and Next. An announced change is kept for MaxSkew after its time, because the clock of another replica
// may be behind.
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
	if len(f.coming) >= maxAnnouncements { // once the first change has happened, another one is within the bound
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

// isUnknown returns whether an announced change is outside the range that the forecast has searched.
func (f *forecaster) isUnknown(a v1alpha1.Announcement) bool {
	return !f.reached.IsZero() && !a.At.Time.Before(f.reached)
}

// entry returns the stored announcement of a change. If known is false, the announcement is new, and no lead has been announced yet.
func (f *forecaster) entry(t schedule.Transition) (entry v1alpha1.Announcement, known bool) {
	if i := slices.IndexFunc(f.announced, func(a v1alpha1.Announcement) bool { return is(a, t) }); i >= 0 {
		return f.announced[i], true
	}
	return v1alpha1.Announcement{At: metav1.NewTime(t.At), State: v1alpha1.State(t.State.String()), Before: v1alpha1.Duration{Duration: math.MaxInt64}}, false
}

// due returns the lead of the announcement that is due now (the shortest lead that has been reached), and the lead of the next announcement
// (the longest that has not been reached). Leads of below or longer have already been announced. Zero means no lead.
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

// waitForSpace sets Next to the time when the oldest past change can be dropped, unless Next is already earlier.
func (f *forecaster) waitForSpace() {
	if len(f.Announced) > 0 && !f.Announced[0].At.After(f.now) {
		f.Next = schedule.Earlier(f.Next, f.Announced[0].At.Add(ledger.MaxSkew))
	}
}

// scheduleNotice sets Next to lead before the change, unless Next is already earlier. It ignores a zero lead.
func (f *forecaster) scheduleNotice(t schedule.Transition, lead time.Duration) {
	if lead > 0 {
		f.Next = schedule.Earlier(f.Next, t.At.Add(-lead))
	}
}

// cancel finds announced changes that will no longer happen. If a change to the same state is announced now, it replaces the old one. If
// the Gate has the announced state at that time anyway, the announcement is dropped silently.
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

// stateAt returns the state at an instant up to the last announced change.
func (f *forecaster) stateAt(at time.Time) v1alpha1.State {
	state := f.state
	for _, t := range f.coming {
		if !t.At.After(at) {
			state = t.State
		}
	}
	return v1alpha1.State(state.String())
}

// comes returns whether an announced change will still happen.
func (f *forecaster) comes(a v1alpha1.Announcement) bool {
	return slices.ContainsFunc(f.coming, func(t schedule.Transition) bool { return is(a, t) })
}

// is returns whether an announcement is about this change.
func is(a v1alpha1.Announcement, t schedule.Transition) bool {
	return a.At.Equal(&metav1.Time{Time: t.At}) && string(a.State) == t.State.String()
}

// transition converts a change of the state to its API type.
func transition(t schedule.Transition) *v1alpha1.Transition {
	n := &v1alpha1.Transition{At: metav1.NewTime(t.At), State: v1alpha1.State(t.State.String()), Reason: string(t.Reason)}
	n.Period, n.Exception = Names(n.Reason, t.By)
	return n
}

// Names returns by as exception if an exception decided, and as period otherwise.
func Names(reason, by string) (period, exception string) {
	if reason == v1alpha1.ExceptionAppliesReason {
		return "", by
	}
	return by, ""
}
