package gate

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// overlays returns the overlays of the exceptions with targets among those that count, except those in excess. An overlay has no state of
// its own while something that wins over exceptions decides. An exception without effect until the next change has no overlay. recheck is
// the first change, zero if there is none.
func overlays(t *timetable.Timetable, counts []*v1alpha1.GateException, opened, closed []schedule.Period, now time.Time) (all []v1alpha1.Overlay, recheck time.Time) {
	var above *schedule.Plan
	for i, e := range counts {
		if !e.HasTargets() || i < len(timetable.Excess(counts)) {
			continue
		}
		if above == nil {
			above = t.Above(opened, closed)
		}
		alone := t.Alone(e)
		state := func(at time.Time) (v1alpha1.State, time.Time) {
			wins := above.Now(at)
			own := alone.Now(at)
			until := schedule.Earlier(wins.Until, own.Until)
			if wins.Reason != schedule.Default || own.Reason == schedule.Default {
				return "", until
			}
			return v1alpha1.State(own.State.String()), until
		}
		is, until := state(now)
		if until.IsZero() {
			continue
		}
		recheck = schedule.Earlier(recheck, until)
		if next, _ := state(until); is != "" || next != "" {
			targets := v1alpha1.NewOverlayTargets(e.Spec.Targets)
			all = append(all, v1alpha1.Overlay{Exception: e.Name, Targets: targets, State: is, Until: metav1.NewTime(until), Next: next})
		}
	}
	return all, recheck
}

// onlyClosing removes the openings from overlays, except those that other overlays have as well. It returns whether it removed a current
// opening.
func onlyClosing(all, other []v1alpha1.Overlay) (removed bool) {
	for i := range all {
		o := &all[i]
		if o.State == v1alpha1.StateOpened && !isOpenIn(other, o.Exception) {
			o.State, removed = "", true
		}
	}
	return removed
}

// isOpenIn returns whether the overlay of an exception opens its targets.
func isOpenIn(all []v1alpha1.Overlay, exception string) bool {
	return slices.ContainsFunc(all, func(o v1alpha1.Overlay) bool { return o.Exception == exception && o.State == v1alpha1.StateOpened })
}

// opensMore returns whether an overlay opens targets that the other overlays do not open.
func opensMore(all, before []v1alpha1.Overlay) bool {
	return slices.ContainsFunc(all, func(o v1alpha1.Overlay) bool {
		return o.State == v1alpha1.StateOpened && !isOpenIn(before, o.Exception)
	})
}

// withSince returns the overlays with the times at which their states began, based on the overlays before.
func withSince(all, before []v1alpha1.Overlay, now time.Time) []v1alpha1.Overlay {
	for i := range all {
		o := &all[i]
		if o.State == "" {
			o.Since = nil
			continue
		}
		o.Since = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
		for j := range before {
			if b := &before[j]; b.Exception == o.Exception && b.State == o.State && b.Since != nil {
				o.Since = b.Since
			}
		}
	}
	return all
}
