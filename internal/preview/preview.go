package preview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Range is the interval [From, Until).
type Range struct {
	From, Until time.Time
}

// Report is the preview of all Gates.
type Report struct {
	Gates []Timeline
}

// Timeline is the preview of one Gate. The JSON format is public. kubectl gate adds the name.
type Timeline struct {
	// Gate is the namespace and name of the Gate.
	Gate string `json:"-"`
	// Mode is Audit if the Gate holds nothing, otherwise empty.
	Mode v1alpha1.Mode `json:"mode,omitempty"`
	// Intervals follow one another without gaps.
	Intervals []Interval `json:"intervals"`

	// scoped contains the intervals in which exceptions and requests determine the state of only some targets. Calendars include them.
	scoped []Interval
	// warnings are the warnings about the Gate itself. A calendar includes them in each event.
	warnings []string
	// plan is the plan that the intervals were computed from, nil if the spec is invalid.
	plan *schedule.Plan
	// broken is true if the state of the Gate cannot be fully determined. A calendar then includes all states.
	broken bool
}

// Interval is an interval in which a Gate keeps a state.
type Interval struct {
	From  metav1.Time `json:"from"`
	Until metav1.Time `json:"until"`
	Cause

	// also lists the further causes in the interval.
	also []Cause
	// only contains the targets that have the state, nil for all.
	only []v1alpha1.TargetReference
	// begun is when the interval began, if that was before the range. It is zero if not, or if unknown.
	begun time.Time
}

// Cause is the state of a Gate and its reason.
type Cause struct {
	// State is opened or closed.
	State string `json:"state"`
	// Reason is the reason of the condition Opened.
	Reason string `json:"reason"`
	// Period and Exception name the period or exception that decides. Event is the calendar event of the period. All are empty if there is
	// another cause.
	Period    string `json:"period,omitempty"`
	Exception string `json:"exception,omitempty"`
	Event     string `json:"event,omitempty"`
}

// By returns the name of the period or exception that decides, with the event, such as holidays (Christmas Day).
func (c Cause) By() string { return gate.WithEvent(cmp.Or(c.Period, c.Exception), c.Event) }

// ShortReason returns the reason in two or three words.
func (c Cause) ShortReason() string { return ShortReason(c.Reason, c.By()) }

// Preview returns the timelines of all Gates of a set, in the order of the set, and the warnings about them. The error is an
// InvalidError, or the error of the context given to Within.
func (s *Set) Preview(r Range) (report *Report, warnings []Fault, err error) {
	report = &Report{Gates: []Timeline{}}
	timelines, warnings, err := s.timelines(r)
	report.Gates = append(report.Gates, timelines...)
	return report, append(warnings, s.wide(nil)...), err
}

func (s *Set) timelines(r Range) (timelines []Timeline, warnings []Fault, err error) {
	faults, refused := s.faults, []Fault(nil)
	for _, g := range s.gates {
		t, found, err := s.timeline(g, r)
		if err != nil {
			return nil, nil, err
		}
		for _, fault := range found {
			if s.keepsStatus(g) || fault.today {
				refused = append(refused, fault)
			} else {
				faults = append(faults, fault)
			}
		}
		broken, warnings := s.broken(g, r)
		t.broken = t.broken || len(warnings) > 0
		warnings = append(warnings, s.gaps(g, t.Intervals)...)
		faults, refused = append(faults, broken...), append(refused, warnings...)
		t.warnings = append(t.warnings, causesOf(slices.Concat(found, warnings, s.gateWarnings(g, r)))...)
		timelines = append(timelines, t)
		refused = append(refused, s.waiting(g, r)...)
		for _, fault := range s.leads(g, r) {
			if fault.File == "" {
				refused = append(refused, fault)
			} else {
				faults = append(faults, fault)
			}
		}
	}
	if len(faults) > 0 {
		return nil, nil, &InvalidError{Faults: faults}
	}
	return timelines, append(refused, s.allWarnings(r)...), nil
}

// last returns the last cause in an interval.
func (i *Interval) last() Cause {
	if n := len(i.also); n > 0 {
		return i.also[n-1]
	}
	return i.Cause
}

// timeline previews a Gate as if the whole set existed at the start of the range. refused lists the requests that are refused, and a
// warning if the timeline is incomplete. err is the error of the context given to Within.
func (s *Set) timeline(g *v1alpha1.Gate, r Range) (t Timeline, refused []Fault, err error) {
	t = Timeline{Gate: nameOf(g), Intervals: []Interval{}}
	if g.Audits() {
		t.Mode = g.Spec.Mode
	}
	g, requests := s.applyRequests(g, r.From)
	for _, request := range requests {
		if request.Err != nil {
			fault := s.fault(g, fmt.Sprintf("metadata.annotations[%s]", request.Annotation), request.Err.Error())
			fault.today = !request.Malformed
			refused = append(refused, fault)
		}
	}
	budget := s.budget()
	plan, errs := s.snapshot(g, r).Plan(r.From, r.Until, budget)
	if len(errs) > 0 {
		if s.isKnown(g) {
			t.Intervals, t.broken = invalid(g, r), true
			t.warnings = append(t.warnings, "the spec is invalid: "+errs.ToAggregate().Error())
		}
		return t, refused, nil // the errors of a manifest have been reported by Read
	}
	t.plan = plan
	if err := plan.Err(); err != nil { // the leads of exceptions are not completely known, either
		return t, append(refused, s.end(g, err)...), budget.Err()
	}
	if s.names != nil {
		var reached time.Time
		t, reached = s.forTarget(t, g, r, slices.Collect(plan.Intervals(r.From, r.Until)))
		if plan.Err() == nil && !reached.IsZero() {
			return t, append(refused, s.end(g, &schedule.BudgetError{Reached: reached})...), budget.Err()
		}
		return t, append(refused, s.end(g, plan.Err())...), budget.Err()
	}
	for i := range plan.Intervals(r.From, r.Until) {
		next := Interval{From: metav1.NewTime(i.From), Until: metav1.NewTime(i.Until), Cause: causeOf(i)}
		if !s.brief {
			for _, c := range plan.Causes(i)[1:] {
				next.also = append(next.also, causeOf(c))
			}
		}
		if t.Intervals = append(t.Intervals, next); len(t.Intervals) == s.most {
			break
		}
	}
	if len(t.Intervals) > 0 && !s.brief {
		t.Intervals[0].begun = s.begun(g, r, budget)
		t.scoped = s.scoped(g, r)
	}
	return t, append(refused, s.end(g, plan.Err())...), budget.Err()
}

// forTarget returns the timeline of a Gate for the target of s, up to reached if it ends early. intervals are the intervals of the whole
// Gate.
func (s *Set) forTarget(t Timeline, g *v1alpha1.Gate, r Range, intervals []schedule.Interval) (_ Timeline, reached time.Time) {
	scoped, reached := s.snapshot(g, r).Scoped(r.From, r.From, r.Until, maxScoped)
	scoped = slices.DeleteFunc(scoped, func(i gate.Scoped) bool {
		return !slices.ContainsFunc(i.Targets, func(ref v1alpha1.TargetReference) bool { return s.names(&ref, g.Namespace) })
	})
	for _, i := range gate.ForTarget(intervals, scoped) {
		if i.Until = schedule.Earlier(i.Until, reached); i.From.Before(i.Until) {
			t.Intervals = append(t.Intervals, Interval{From: metav1.NewTime(i.From), Until: metav1.NewTime(i.Until), Cause: causeOf(i)})
		}
	}
	return t, reached
}

// maxScoped bounds the changes through which an exception with targets, and the requests with targets, are followed.
const maxScoped = 400

// scoped returns the intervals in which exceptions and requests with targets determine the state of these targets.
func (s *Set) scoped(g *v1alpha1.Gate, r Range) (all []Interval) {
	scoped, _ := s.snapshot(g, r).Scoped(r.From, r.From.Add(-lookBack[1]), r.Until, maxScoped)
	for _, i := range scoped {
		if !i.Until.After(r.From) {
			continue
		}
		next := Interval{From: metav1.NewTime(i.From), Until: metav1.NewTime(i.Until), Cause: causeOf(i.Interval), only: i.Targets}
		switch {
		case i.From.Equal(r.From.Add(-lookBack[1])):
			next.From = metav1.NewTime(r.From) // its start is unknown
		case i.From.Before(r.From):
			next.From, next.begun = metav1.NewTime(r.From), i.From
		}
		all = append(all, next)
	}
	return all
}

// lookBack lists the distances before a range at which the search for the start of an interval begins, one after the other. For a Gate
// that changes often, the first one is enough. Calendars are read equally far back.
var lookBack = []time.Duration{24 * time.Hour, 8 * 24 * time.Hour, 64 * 24 * time.Hour, 366 * 24 * time.Hour}

// begun returns when the interval at the start of a range began, or the creation time of the Gate if the interval began before the search
// limit. It returns zero if neither is known.
func (s *Set) begun(g *v1alpha1.Gate, r Range, budget *schedule.Budget) time.Time {
	for _, back := range lookBack {
		from := r.From.Add(-back)
		plan, errs := s.snapshot(g, r).Plan(from, r.From.Add(time.Second), budget)
		if len(errs) > 0 {
			return time.Time{}
		}
		begin := from
		for i := range plan.Intervals(from, r.From.Add(time.Second)) {
			begin = i.From
		}
		if plan.Err() != nil {
			return time.Time{}
		}
		if begin.After(from) {
			return begin
		}
	}
	if g.CreationTimestamp.After(r.From) {
		return time.Time{}
	}
	return g.CreationTimestamp.Time
}

func causeOf(i schedule.Interval) Cause {
	c := Cause{State: i.State.String(), Reason: string(i.Reason), Event: i.Event}
	c.Period, c.Exception = gate.Names(c.Reason, i.By)
	return c
}

// causeAt returns the cause of the state of a Gate at an instant, which may differ from the cause at the start of the interval. It
// returns false if the timeline does not include the instant.
func (t *Timeline) causeAt(at time.Time) (Cause, bool) {
	if t.plan == nil {
		return Cause{}, false
	}
	for i := range t.plan.Intervals(at, at.Add(time.Second)) {
		return causeOf(i), true
	}
	return Cause{}, false
}

// invalid returns the intervals of a Gate with an invalid spec. Such a Gate closes when a close is due, and never opens.
func invalid(g *v1alpha1.Gate, r Range) []Interval {
	d := gate.Decide(g, r.From)
	first := Interval{
		From: metav1.NewTime(r.From), Until: metav1.NewTime(r.Until),
		Cause: Cause{State: string(d.State), Reason: d.Reason},
	}
	first.Period, first.Exception = gate.Names(d.Reason, d.By)
	if d.Next == nil || !d.Next.At.Time.Before(r.Until) {
		return []Interval{first}
	}
	next := Interval{From: d.Next.At, Until: first.Until, Cause: Cause{State: string(d.Next.State), Reason: d.Next.Reason, Period: d.Next.Period, Exception: d.Next.Exception}}
	first.Until = d.Next.At
	return []Interval{first, next}
}

// leads returns a fault for each exception of a Gate whose lead time is refused.
func (s *Set) leads(g *v1alpha1.Gate, r Range) (faults []Fault) {
	snapshot := s.snapshot(g, r)
	refused := snapshot.RefusedLeads(r.From)
	for _, e := range snapshot.Exceptions {
		for _, err := range refused[e.Name] {
			faults = append(faults, s.fault(e, err.Field, err.ErrorBody()))
		}
	}
	return faults
}
