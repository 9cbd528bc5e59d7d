package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// reportedFor is how long the status of a Gate must have reported that it is closed before the release of one of its targets is a
// violation: an earlier decision to release may be in progress.
const reportedFor = 3 * time.Second

// releasedDespiteGate returns a violation if the controller released a target although another Gate than its holders governs it and reports
// that it is closed.
func (h *History) releasedDespiteGate(t transition) []string {
	if t.listed || t.after.GetKind() == "Gate" || !ours(t.before) || ours(t.after) || len(claims(t.after)) > 0 ||
		t.after.GetDeletionTimestamp() != nil || t.after.GetKind() == certificateKind && !deferrable(t) {
		return nil
	}
	var closed []string
	for key := range h.gates {
		if slices.Contains(names(t.before, heldByAnnotation), key) {
			continue
		}
		since, ok := h.closedFor(key, t)
		if !ok || since.After(t.at.Add(-reportedFor)) {
			continue
		}
		// A Gate that is closing does not observe targets that are added to it meanwhile.
		if added := h.log.wroteSince(t.after.GetUID(), since.Add(-reportedFor)); !added || t.at.After(h.log.dueBy(since)) {
			closed = append(closed, key)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	slices.Sort(closed)
	return []string{fmt.Sprintf("%s, version %s to %s: it was released, although gates that govern it report that they are closed: %s",
		name(t.after), t.before.GetResourceVersion(), t.after.GetResourceVersion(), strings.Join(closed, ", "))}
}

// deferrable returns whether a Certificate could be held throughout. A Certificate that is being issued, is not ready, or is within its
// margin is released in any case.
func deferrable(t transition) bool {
	before, issued := renewal(t.before, defaultMargin)
	after, _ := renewal(t.after, defaultMargin)
	ready := condition(t.after, "Ready")
	return issued && before.Equal(after) && t.at.Before(after) && ready != nil && ready.Status == "True" && condition(t.after, "Issuing") == nil
}

// closedFor returns since when a Gate has governed a target, must hold it, and has reported that it is closed, until the target was
// written.
func (h *History) closedFor(key string, t transition) (since time.Time, ok bool) {
	if _, sure := h.gateAt(key, versionOf(t.after)); !sure {
		return since, false
	}
	for _, v := range h.gates[key] {
		if versionOf(v.obj) > versionOf(t.after) {
			break
		}
		g := &gate{}
		is := runtime.DefaultUnstructuredConverter.FromUnstructured(v.obj.Object, &g.Gate) == nil && !h.log.deletedBy(v.obj.GetUID(), t.at) &&
			!g.Spec.Suspend && isSettled(&g.Gate, t.at) && governs(g, t.before) && governs(g, t.after)
		if is && (!ok || v.listed) {
			since = v.at
		}
		ok = is
	}
	return since, ok
}
