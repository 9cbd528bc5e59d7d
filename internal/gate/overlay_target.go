package gate

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// WithOverlays returns the Gate that applies to a target with these overlays from its status. It is a copy, or g itself if there are no
// overlays. While an overlay decides, the target is not part of the release of the other targets, so the copy has no spec.release.
func WithOverlays(g *v1alpha1.Gate, matching []*v1alpha1.Overlay) *v1alpha1.Gate {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	if len(matching) == 0 || opened == nil {
		return g
	}
	changed := *g
	if next := nextWith(g, opened, matching); !next.At.IsZero() {
		changed.Status.NextTransition = &next
	}
	if by := deciding(matching, time.Time{}); by != nil {
		condition, reason := *opened, reasonOf(by, by.State)
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, fmt.Sprintf(msgOverlay, by.State, OverlayCause(by))
		if by.State == v1alpha1.StateOpened {
			condition.Status = metav1.ConditionTrue
		}
		changed.Spec.Release = nil
		if by.RequestedAt != nil {
			changed.Status.Requests = requestOf(g, by)
		}
		changed.Status.Conditions = slices.Clone(g.Status.Conditions)
		meta.SetStatusCondition(&changed.Status.Conditions, condition)
		changed.Status.LastTransition = &v1alpha1.Transition{State: by.State, Reason: reason, Exception: by.Exception}
		if by.Since != nil {
			changed.Status.LastTransition.At = *by.Since
		}
	}
	return &changed
}

// requestOf returns the request of an overlay, as a request for the whole Gate.
func requestOf(g *v1alpha1.Gate, o *v1alpha1.Overlay) []v1alpha1.AcceptedRequest {
	for _, r := range g.Status.Requests {
		if len(r.Targets) > 0 && r.RequestedAt.Equal(o.RequestedAt) && r.RequestedBy == o.RequestedBy {
			r.Targets = nil
			return []v1alpha1.AcceptedRequest{r}
		}
	}
	return nil
}

// OverlayCause describes the request or the exception of an overlay.
func OverlayCause(o *v1alpha1.Overlay) string {
	switch {
	case o.Exception != "":
		return fmt.Sprintf(msgOfException, o.Exception)
	case o.RequestedBy != "":
		return fmt.Sprintf(msgByRequestOf, o.RequestedBy)
	}
	return msgByRequest
}

// reasonOf returns the reason of the condition Opened while an overlay has a state.
func reasonOf(o *v1alpha1.Overlay, state v1alpha1.State) string {
	switch {
	case o.Exception != "":
		return v1alpha1.ExceptionAppliesReason
	case state == v1alpha1.StateOpened:
		return string(schedule.OpenRequested)
	}
	return string(schedule.CloseRequested)
}

// deciding returns the overlay that determines the state at an instant, nil if there is none. At the zero instant, it uses the states in
// the overlays. Requests take precedence over exceptions, and then closed takes precedence.
func deciding(matching []*v1alpha1.Overlay, at time.Time) (by *v1alpha1.Overlay) {
	for _, o := range matching {
		state := stateAt(o, at)
		switch {
		case state == "":
		case by == nil, by.Exception != "" && o.Exception == "":
			by = o
		case state == v1alpha1.StateClosed && (by.Exception != "") == (o.Exception != ""):
			by = o
		}
	}
	return by
}

// stateAt returns the state of an overlay at an instant, empty if it has the state of the Gate.
func stateAt(o *v1alpha1.Overlay, at time.Time) v1alpha1.State {
	if o.Until == nil || at.Before(o.Until.Time) {
		return o.State
	}
	return o.Next
}

// nextWith returns the next transition of a Gate for a target with overlays: the first change of the Gate or of an overlay. If the state
// after it is not closed, the Gate is undecided from then until its next decision.
func nextWith(g *v1alpha1.Gate, opened *metav1.Condition, matching []*v1alpha1.Overlay) v1alpha1.Transition {
	var next v1alpha1.Transition
	state := v1alpha1.StateClosed
	if opened.Status == metav1.ConditionTrue {
		state = v1alpha1.StateOpened
	}
	if g.Status.NextTransition != nil {
		next = *g.Status.NextTransition
	}
	for _, o := range matching {
		if o.Until != nil && (next.At.IsZero() || o.Until.Before(&next.At)) {
			next = v1alpha1.Transition{At: *o.Until, State: state, Reason: opened.Reason}
		}
	}
	if by := deciding(matching, next.At.Time); by != nil && !next.At.IsZero() {
		next.State = stateAt(by, next.At.Time)
		next.Reason, next.Period, next.Exception = reasonOf(by, next.State), "", by.Exception
	}
	return next
}

// LockedState returns the state in which a GateLock must keep the targets of an overlay: opened only while the overlay certainly opens them,
// closed until the Gate has decided that the overlay no longer closes them, and empty if they have the state of the Gate.
func LockedState(o *v1alpha1.Overlay, now time.Time) v1alpha1.State {
	switch state := stateAt(o, now); {
	case state == v1alpha1.StateClosed, o.State == v1alpha1.StateClosed:
		return v1alpha1.StateClosed
	case o.Until == nil || now.Before(o.Until.Time):
		return state
	}
	return ""
}

// OverlaysClose returns whether an overlay closes targets, or stops opening them, at an instant.
func OverlaysClose(g *v1alpha1.Gate, at time.Time) bool {
	return slices.ContainsFunc(g.Status.Overlays, func(o v1alpha1.Overlay) bool {
		return stateAt(&o, at) == v1alpha1.StateClosed || o.State == v1alpha1.StateOpened && stateAt(&o, at) != v1alpha1.StateOpened
	})
}
