package checker

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// pauseCounts is how long after a pause it is unknown which replica decided a write.
	pauseCounts = 20 * time.Second
	// settled is how long after a write of a Gate or a target the controller may still act on the version before.
	settled = 5 * time.Second
)

// gateVersion is a version of a Gate. If it is from a list, versions before it may be missing.
type gateVersion struct {
	obj    *unstructured.Unstructured
	listed bool
	at     time.Time
}

// heldAgain returns a violation if a target was held although another client had resumed it, and all of its Gates had held it before and
// respect that.
func (h *History) heldAgain(t transition, resumed time.Time) []string {
	gates := names(t.after, heldByAnnotation)
	for _, key := range gates {
		if !slices.Contains(names(t.before, heldByAnnotation), key) || !h.respects(key, resumed, t) {
			return nil
		}
	}
	if len(gates) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s, version %s to %s: it was resumed at %s, all gates %q respect that, and it is held again",
		name(t.after), t.before.GetResourceVersion(), t.after.GetResourceVersion(), resumed, gates)}
}

// respects returns whether a Gate that respects resumes was closed at an instant with all of its requests handled, and did not change until
// a transition. The condition Approved of the target must have reported a hold since the Gate closed: the controller cannot distinguish an
// earlier resume from one before the Gate closed, and holds the target again.
func (h *History) respects(key string, since time.Time, t transition) bool {
	var first *v1alpha1.Gate
	for _, v := range h.gates[key] {
		g := &v1alpha1.Gate{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(v.obj.Object, g) != nil {
			return false
		}
		switch {
		case versionOf(v.obj) > versionOf(t.after):
		case v.at.Before(since):
			first = g
		case first == nil || g.UID != first.UID || !isSettled(g, t.at) || g.Generation != first.Generation ||
			!reflect.DeepEqual(g.Status.Requests, first.Status.Requests), !reflect.DeepEqual(g.Status.Memory.HandledRequests, first.Status.Memory.HandledRequests):
			return false
		}
	}
	return first != nil && !h.log.deletedBy(first.UID, t.at) && first.Spec.Mode == v1alpha1.ModeLenient && isSettled(first, t.at) &&
		reportsHeldSince(t.before, first)
}

// reportsHeldSince returns whether the condition Approved of a target is not older than the last transition of a Gate.
func reportsHeldSince(obj *unstructured.Unstructured, g *v1alpha1.Gate) bool {
	approved, last := condition(obj, v1alpha1.ApprovedCondition), g.Status.LastTransition
	return approved != nil && last != nil && !approved.LastTransitionTime.Before(&last.At)
}

// isSettled returns whether a Gate stays closed beyond an instant, and its status has observed its spec and its requests.
func isSettled(g *v1alpha1.Gate, until time.Time) bool {
	if next := g.Status.NextTransition; next != nil && !next.At.After(until) || g.DeletionTimestamp != nil {
		return false
	}
	for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
		if value, ok := g.Annotations[string(action)+".gate.fluxcd.io/requestedAt"]; ok && !handles(g, action, value) {
			return false
		}
	}
	return g.Status.ObservedGeneration == g.Generation && meta.IsStatusConditionFalse(g.Status.Conditions, v1alpha1.OpenedCondition)
}

// handles returns whether a value is the last request for an action that a Gate has handled.
func handles(g *v1alpha1.Gate, action v1alpha1.RequestAction, value string) bool {
	return slices.ContainsFunc(g.Status.Memory.HandledRequests, func(m v1alpha1.HandledRequest) bool { return m.Action == action && m.LastHandled == value })
}

// gateAt returns the version of a Gate at the time of a write of another object. It returns false if that is unknown, because the next
// version is from a list.
func (h *History) gateAt(key string, version uint64) (obj *unstructured.Unstructured, known bool) {
	for _, v := range h.gates[key] {
		if versionOf(v.obj) > version {
			return obj, obj != nil && !v.listed
		}
		obj = v.obj
	}
	return obj, obj != nil
}

// inOrder returns a violation if a write of the controller added or removed names of Gates in the wrong order: the status of a Gate must
// report that it is closed, or due to close, before the Gate holds anything, and a closed Gate releases nothing.
func (h *History) inOrder(t transition) []string {
	if t.listed || t.after.GetKind() == "Gate" || t.after.GetKind() == certificateKind || len(claims(t.after)) > 0 {
		return nil
	}
	var wrong []string
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s, version %s to %s: ", name(t.after), t.before.GetResourceVersion(), t.after.GetResourceVersion())+
			fmt.Sprintf(format, args...))
	}
	before, after := names(t.before, heldByAnnotation), names(t.after, heldByAnnotation)
	changed := slices.DeleteFunc(slices.Concat(before, after), func(key string) bool {
		return slices.Contains(before, key) && slices.Contains(after, key)
	})
	for _, key := range changed {
		is := slices.Contains(after, key)
		g, known := h.gateAt(key, versionOf(t.after))
		if !known || h.log.deletedBy(g.GetUID(), t.at) || slices.Contains(names(t.after, gatesAnnotation), key) || slices.Contains(names(t.before, gatesAnnotation), key) {
			continue
		}
		opened := condition(g, v1alpha1.OpenedCondition)
		switch {
		case is && (opened == nil || opened.Status == metav1.ConditionTrue) && g.GetDeletionTimestamp() == nil && !isDueToClose(g, t.at) &&
			!h.closedLately(key, t):
			fail("gate %s holds it before its status says that it is closed, or due to close by now", key)
		case !is && opened != nil && opened.Status == metav1.ConditionFalse && g.GetDeletionTimestamp() == nil &&
			h.governedFor(g, t):
			fail("it is released from gate %s, which is closed", key)
		}
	}
	return wrong
}

// closedLately returns whether the status of a Gate reported less than settled before a transition that it is closed. A hold may have been
// decided before: writes of targets are conditional on the target, not on its Gates.
func (h *History) closedLately(key string, t transition) bool {
	closed := false
	for _, v := range h.gates[key] {
		if versionOf(v.obj) > versionOf(t.after) {
			break
		}
		if closed && v.at.After(t.at.Add(-settled)) {
			return true
		}
		opened := condition(v.obj, v1alpha1.OpenedCondition)
		closed = opened != nil && opened.Status == metav1.ConditionFalse
	}
	return closed
}

// isDueToClose returns whether, according to its status, a Gate closes by an instant.
func isDueToClose(obj *unstructured.Unstructured, at time.Time) bool {
	g := &v1alpha1.Gate{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, g) != nil {
		return false
	}
	next := g.Status.NextTransition
	return next != nil && next.State == v1alpha1.StateClosed && !next.At.After(at)
}

// governedFor returns whether a Gate has governed a target for a while.
func (h *History) governedFor(obj *unstructured.Unstructured, t transition) bool {
	g := &gate{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &g.Gate) != nil || !governs(g, t.before) || !governs(g, t.after) {
		return false
	}
	since := t.at.Add(-settled)
	return !h.log.wroteSince(obj.GetUID(), since) && !h.log.wroteSince(t.after.GetUID(), since)
}
