package preview

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// side is one side of a comparison of the targets of a Gate.
type side struct {
	*Timeline
	scoped []gate.Scoped
	// reached is the instant from which on scoped is incomplete, zero if it is complete.
	reached time.Time
}

// side returns the side of a Gate with a timeline in a range.
func (s *Set) side(t *Timeline, r Range) side {
	g, _ := s.applyRequests(s.gate(t.Gate), r.From)
	scoped, reached := s.snapshot(g, r).Scoped(r.From, r.From, r.Until, maxScoped)
	return side{t, scoped, reached}
}

// only returns the side with only the intervals of some targets.
func (s side) only(targets []v1alpha1.TargetReference) side {
	s.scoped = slices.DeleteFunc(slices.Clone(s.scoped), func(i gate.Scoped) bool { return !equality.Semantic.DeepEqual(i.Targets, targets) })
	return s
}

// intervals returns the intervals of the targets.
func (s side) intervals() (all []Interval) {
	whole := make([]schedule.Interval, len(s.Intervals))
	for k, i := range s.Intervals {
		whole[k] = schedule.Interval{From: i.From.Time, Until: i.Until.Time, Reason: schedule.Reason(i.Reason), By: i.By(), Event: i.Event}
		if i.State == string(v1alpha1.StateOpened) {
			whole[k].State = schedule.Opened
		}
	}
	for _, i := range gate.ForTarget(whole, s.scoped) {
		all = append(all, Interval{From: metav1.NewTime(i.From), Until: metav1.NewTime(i.Until), Cause: causeOf(i)})
	}
	return all
}

// decides returns whether an exception or a request with targets determines the state at some time between two instants.
func (s side) decides(from, until time.Time) bool {
	return slices.ContainsFunc(s.scoped, func(i gate.Scoped) bool { return i.From.Before(until) && from.Before(i.Until) })
}

// differingTargets returns the intervals in which exceptions or requests with targets decide on at least one side, and the states of these
// targets differ. Intervals for other lists of targets are ignored, even if the lists overlap.
func differingTargets(before, after side) (differences []Difference) {
	var lists [][]v1alpha1.TargetReference
	for _, i := range slices.Concat(before.scoped, after.scoped) {
		if !slices.ContainsFunc(lists, func(list []v1alpha1.TargetReference) bool { return equality.Semantic.DeepEqual(list, i.Targets) }) {
			lists = append(lists, i.Targets)
		}
	}
	reached := schedule.Earlier(before.reached, after.reached)
	for _, targets := range lists {
		old, next := before.only(targets), after.only(targets)
		for _, d := range differing(old.intervals(), next.intervals()) {
			if d.Until.Time = schedule.Earlier(d.Until.Time, reached); !d.From.Before(&d.Until) {
				continue
			}
			decidesBefore, decidesAfter := old.decides(d.From.Time, d.Until.Time), next.decides(d.From.Time, d.Until.Time)
			if !decidesBefore && !decidesAfter {
				continue // the Gate itself differs
			}
			whole := d
			whole.explain(old.Timeline, next.Timeline)
			if !decidesBefore {
				d.Before = whole.Before
			}
			if !decidesAfter {
				d.After = whole.After
			}
			d.Targets = targets
			differences = append(differences, d)
		}
	}
	return differences
}
