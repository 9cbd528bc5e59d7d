package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// told is how long a Gate has said that it is closed before nobody may let go what it
// governs: a release may be under way that was decided before.
const told = 3 * time.Second

// letGo says if the controller let a target go although another Gate than those that held
// it governs it and says that it is closed.
func (h *History) letGo(t transition) []string {
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
		if !ok || since.After(t.at.Add(-told)) {
			continue
		}
		// A Gate that closes does not know yet of what it is given meanwhile.
		if given := h.log.wroteSince(t.after.GetUID(), since.Add(-told)); !given || t.at.After(h.log.dueBy(since)) {
			closed = append(closed, key)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	slices.Sort(closed)
	return []string{fmt.Sprintf("%s, version %s to %s: it is let go, and gates govern it that have said that they are closed: %s",
		name(t.after), t.before.GetResourceVersion(), t.after.GetResourceVersion(), strings.Join(closed, ", "))}
}

// deferrable returns whether a Certificate was nothing but held or not: it is let go in
// any case if it is issued, or is not ready, or its margin has begun.
func deferrable(t transition) bool {
	before, issued := renewal(t.before, defaultMargin)
	after, _ := renewal(t.after, defaultMargin)
	ready := condition(t.after, "Ready")
	return issued && before.Equal(after) && t.at.Before(after) && ready != nil && ready.Status == "True" && condition(t.after, "Issuing") == nil
}

// closedFor returns since when a Gate governs a target, is to hold it, and says that it is
// closed, until the target was written.
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
