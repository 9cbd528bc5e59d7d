package gate

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Decision is the state of a Gate at an instant, in API types.
type Decision struct {
	State v1alpha1.State
	// Reason and Message are for the condition Opened.
	Reason, Message string
	// By is the name of the deciding period or exception, empty if neither decided. Event is the name of the period's calendar event, empty if
	// there is none.
	By, Event string
	// Next is the next change of state, nil if none is known.
	Next *v1alpha1.Transition
	// Recheck is the time when State or Reason may change, zero if no change is known.
	Recheck time.Time
	// RequestedAt and ResetToDefaultAt are from the request in force, or from the last request if none is in force.
	RequestedAt, ResetToDefaultAt *metav1.Time
	// Request is the request that decided the state, nil if no request did.
	Request *ledger.Request
	// Overlays are the states of targets that differ from the state of the Gate.
	Overlays []v1alpha1.Overlay
	// Errors lists the errors of an invalid spec.
	Errors field.ErrorList
	// Broken lists the calendars that cannot be read.
	Broken []timetable.BrokenCalendar
}

// Decide returns the decision on a Gate at an instant. The decision depends on the spec, the accepted requests, the recorded state of the
// dependencies, and the exceptions that count. If the spec is invalid, it also depends on the last state. All calendars count as broken.
func Decide(g *v1alpha1.Gate, now time.Time, exceptions ...*v1alpha1.GateException) Decision {
	return NewSnapshot(g, nil, exceptions...).Decide(now)
}

// Decide is like the function Decide, with the calendars of the snapshot.
func (in *Snapshot) Decide(now time.Time) Decision {
	g, compiled := in.Gate, in.compile()
	if len(compiled.errs) > 0 {
		return decideInvalid(g, compiled.errs, now)
	}
	counts, broken := counting(g, in.Exceptions, now), compiled.Broken
	requests := ledger.At(g, now)
	opened, closed := ledger.Ahead(g).Periods(now)
	plan := compiled.Plan(counts, opened, closed, nil)
	s := plan.Decide(now)

	d := Decision{State: v1alpha1.State(s.State.String()), Reason: string(s.Reason), By: s.By, Event: s.Event, Recheck: s.Until, Broken: broken}
	if !s.Next.At.IsZero() {
		d.Next = transition(s.Next)
	}
	request := requests.Deciding(s.Reason)
	d.Message = message(s, d.Next, &g.Spec, request)
	var edge time.Time
	d.Overlays, edge = requestOverlays(compiled.Timetable, requests, now)
	exceptions, next := overlays(compiled.Timetable, counts, opened, closed, now)
	d.Overlays = append(d.Overlays, exceptions...)
	d.Recheck = schedule.Earlier(schedule.Earlier(d.Recheck, edge), next)
	if why := waitsFor(g); why != "" {
		d.wait(g, s, request, why)
		onlyClosing(d.Overlays, nil)
	}
	waiting := requests.Unapproved(now)
	d.Message += after(requests.WaitsForApproval(waiting)) + after(requests.Uncounted())
	for _, r := range waiting {
		if r.State == v1alpha1.RequestWaiting {
			d.Recheck = schedule.Earlier(d.Recheck, r.Until.Time)
		}
	}
	d.Message += unreadable(s, d.Next, broken)
	p := &peers{counts: counts, timetable: compiled.Timetable, refused: plan.Refused, now: now}
	d.Message += inForceToo(&d, compiled.Timetable, p.applying(), timetable.Excess(counts), plan.Refused())
	if !s.Reached.IsZero() {
		d.Recheck = schedule.Earlier(d.Recheck, s.Reached)
		d.Message += msgNextUnknown
	}
	if next := nextEdge(counts, now); !next.IsZero() {
		d.Recheck = schedule.Earlier(d.Recheck, next)
	}
	d.RequestedAt, d.ResetToDefaultAt = requests.ResetTimes(func(at time.Time) v1alpha1.State {
		return in.byItself(at)
	})
	if d.Reason == string(s.Reason) {
		d.Request = request
	}
	return d
}

// Intervals returns the states of a Gate between two instants, with its exceptions, as schedule.Plan.Intervals does. It returns the errors
// of an invalid spec. All calendars count as broken.
func Intervals(g *v1alpha1.Gate, from, until time.Time, exceptions ...*v1alpha1.GateException) (iter.Seq[schedule.Interval], field.ErrorList) {
	return NewSnapshot(g, nil, exceptions...).Intervals(from, until)
}

// Intervals is like the function Intervals, with the calendars of the snapshot.
func (in *Snapshot) Intervals(from, until time.Time) (iter.Seq[schedule.Interval], field.ErrorList) {
	plan, errs := in.Plan(from, until, nil)
	if len(errs) > 0 {
		return nil, errs
	}
	return plan.Intervals(from, until), nil
}

// Plan returns the plan of a Gate between two instants, with all requests that are in force or planned. A nil budget means a new budget of
// schedule.DecisionLookups.
func (in *Snapshot) Plan(from, until time.Time, budget *schedule.Budget) (*schedule.Plan, field.ErrorList) {
	compiled := in.compile()
	if len(compiled.errs) > 0 {
		return nil, compiled.errs
	}
	opened, closed := ledger.Ahead(in.Gate).Periods(until)
	return compiled.Plan(counting(in.Gate, in.Exceptions, from), opened, closed, budget), nil
}

// byItself returns the state that the Gate would have had at an instant without requests. It includes exceptions that have ended since
// then.
func (in *Snapshot) byItself(at time.Time) v1alpha1.State {
	return v1alpha1.State(in.compile().Plan(counting(in.Gate, in.Exceptions, at), nil, nil, nil).State(at).String())
}

// Withheld returns a decision that keeps the Gate closed, because the API server's time is unknown. Use it for a Gate that would open.
func (d Decision) Withheld() Decision {
	d.State, d.Reason, d.By, d.Event, d.Next, d.Request = v1alpha1.StateClosed, v1alpha1.TimeUnknownReason, "", "", nil, nil
	d.Message = msgTimeUnknown
	return d
}

// decideInvalid decides on a Gate with an invalid spec. It never opens the Gate, and closes it if a close is due or a dependency is not
// ready. A Gate that never had a valid spec is closed. The overlays are not changed.
func decideInvalid(g *v1alpha1.Gate, errs field.ErrorList, now time.Time) Decision {
	cause := errs.ToAggregate().Error()
	d := Decision{
		State: v1alpha1.StateClosed, Reason: v1alpha1.InvalidSpecReason, Errors: errs,
		Message:     msgInvalidStaysClosed + cause,
		RequestedAt: g.Status.RequestedAt, ResetToDefaultAt: g.Status.ResetToDefaultAt,
	}
	var edge time.Time
	d.Overlays, edge = withoutSpec(g.Status.Overlays, ledger.At(g, now), now)
	d.Recheck = edge
	if !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.OpenedCondition) {
		return d
	}
	closing := time.Time{}
	if next := g.Status.NextTransition; next != nil && next.State == v1alpha1.StateClosed {
		closing = next.At.Time
	}
	if request, start := ledger.Ahead(g).FirstClose(now); request != nil {
		if closing = schedule.Earlier(closing, start); closing.Equal(start) {
			d.Request = request
		}
	}
	if !closing.IsZero() && !closing.After(now) {
		d.Message = msgInvalidClosed + cause
		return d
	}
	d.Request = nil
	if why := closesInvalid(g); why != "" {
		d.Message = msgClosed + why + msgInvalid + cause
		return d
	}
	d.State = v1alpha1.StateOpened
	d.Message = msgInvalidStaysOpen + cause
	if !closing.IsZero() {
		d.Recheck = schedule.Earlier(edge, closing)
		d.Next = &v1alpha1.Transition{At: metav1.NewTime(closing), State: v1alpha1.StateClosed, Reason: v1alpha1.InvalidSpecReason}
	}
	return d
}
