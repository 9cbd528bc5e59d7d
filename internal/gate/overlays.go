package gate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// requestOverlays returns the overlays of the requests with targets that are in force or planned. Close periods with override: Deny
// take precedence over open requests. recheck is the first change, zero if there is none.
func requestOverlays(t *timetable.Timetable, requests *ledger.Ledger, now time.Time) (all []v1alpha1.Overlay, recheck time.Time) {
	for _, r := range requests.Limited(now) {
		plan := t.Requested(r.Action, r.Period)
		is := plan.Now(now)
		o := requestOverlay(&r, requestedState(is.Reason))
		if recheck = schedule.Earlier(recheck, is.Until); !is.Until.IsZero() {
			o.Until, o.Next = &metav1.Time{Time: is.Until}, requestedState(plan.Now(is.Until).Reason)
		}
		if o.State != "" || o.Next != "" {
			all = append(all, o)
		}
	}
	return all, recheck
}

// requestOverlay returns the overlay of a request with targets.
func requestOverlay(r *ledger.Limited, state v1alpha1.State) v1alpha1.Overlay {
	at := metav1.NewMicroTime(r.At)
	return v1alpha1.Overlay{RequestedAt: &at, RequestedBy: r.By, Targets: v1alpha1.RequestOverlayTargets(r.Targets), State: state}
}

// requestedState returns the state that a request determines, empty if the reason is not a request.
func requestedState(reason schedule.Reason) v1alpha1.State {
	if reason == schedule.OpenRequested {
		return v1alpha1.StateOpened
	}
	if reason == schedule.CloseRequested {
		return v1alpha1.StateClosed
	}
	return ""
}

// withoutSpec returns the overlays of a Gate with an invalid spec: the overlays in its status, except open requests that have ended,
// and the overlays of its close requests. recheck is the first change, zero if there is none.
func withoutSpec(before []v1alpha1.Overlay, requests *ledger.Ledger, now time.Time) (all []v1alpha1.Overlay, recheck time.Time) {
	for _, r := range requests.Limited(now) {
		o := requestOverlay(&r, v1alpha1.StateClosed)
		until := r.Until
		switch {
		case r.Action == v1alpha1.RequestOpen:
			o.State = v1alpha1.StateOpened
			if !isOpenIn(before, &o) {
				continue
			}
		case r.From.After(now):
			o.State, o.Next, until = "", v1alpha1.StateClosed, r.From
		}
		if recheck = schedule.Earlier(recheck, until); !until.IsZero() {
			o.Until = &metav1.Time{Time: until}
		}
		all = append(all, o)
	}
	for _, o := range before {
		if o.RequestedAt == nil {
			all = append(all, o)
		}
	}
	return all, recheck
}

// openAt returns the overlays that open their targets at an instant.
func openAt(all []v1alpha1.Overlay, at time.Time) []v1alpha1.Overlay {
	return slices.DeleteFunc(slices.Clone(all), func(o v1alpha1.Overlay) bool { return stateAt(&o, at) != v1alpha1.StateOpened })
}

// missingCloses returns the overlays that close targets that no overlay in all closes.
func missingCloses(all, overlays []v1alpha1.Overlay) []v1alpha1.Overlay {
	return slices.DeleteFunc(slices.Clone(overlays), func(o v1alpha1.Overlay) bool {
		return o.State != v1alpha1.StateClosed || isIn(all, &o, v1alpha1.StateClosed)
	})
}

// overlays returns the overlays of the exceptions with targets that count and are not in excess. An overlay has no state while a
// setting with precedence over exceptions decides. An exception without effect until the next change has no overlay. recheck is the
// first change, zero if there is none.
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
			all = append(all, v1alpha1.Overlay{Exception: e.Name, Targets: targets, State: is, Until: &metav1.Time{Time: until}, Next: next})
		}
	}
	return all, recheck
}

// onlyClosing removes the openings from overlays, except openings that other overlays also have. It returns whether it removed a
// current opening.
func onlyClosing(all, other []v1alpha1.Overlay) (removed bool) {
	for i := range all {
		o := &all[i]
		if o.State == v1alpha1.StateOpened && !isOpenIn(other, o) {
			o.State, removed = "", true
		}
	}
	return removed
}

// isOpenIn returns whether an overlay of the same exception or requester opens the same targets.
func isOpenIn(all []v1alpha1.Overlay, o *v1alpha1.Overlay) bool {
	return isIn(all, o, v1alpha1.StateOpened)
}

// isIn returns whether an overlay of the same exception or requester has a state for the same targets.
func isIn(all []v1alpha1.Overlay, o *v1alpha1.Overlay, state v1alpha1.State) bool {
	return slices.ContainsFunc(all, func(other v1alpha1.Overlay) bool { return other.State == state && isSame(o, &other) })
}

// isSame returns whether two overlays belong to the same exception, or to the same requester and have the same targets. The time of a
// request may differ, because it can depend on the clock.
func isSame(a, b *v1alpha1.Overlay) bool {
	return a.Exception == b.Exception && a.RequestedBy == b.RequestedBy && (a.Exception != "" || equality.Semantic.DeepEqual(a.Targets, b.Targets))
}

// opensMore returns whether an overlay opens targets that the other overlays do not open.
func opensMore(all, before []v1alpha1.Overlay) bool {
	return slices.ContainsFunc(all, func(o v1alpha1.Overlay) bool {
		return o.State == v1alpha1.StateOpened && !isOpenIn(before, &o)
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
			if b := &before[j]; isSame(b, o) && b.State == o.State && b.Since != nil {
				o.Since = b.Since
			}
		}
	}
	return all
}
