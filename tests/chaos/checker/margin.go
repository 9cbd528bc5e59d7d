package checker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	// overdueAfter is how long a Certificate may be held past its margin, because a write and its retries may meet faults.
	overdueAfter = 6 * time.Second
	// recovers is how long after a disturbance a replica needs to get the lease and read all objects.
	recovers = 20 * time.Second
)

// Disturbed records an instant at which the controller could not act in time, because a replica was down or the API server did not respond.
func (l *Log) Disturbed(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.disturbed); n > 0 && at.Before(l.disturbed[n-1]) {
		return // an earlier disturbance makes no difference
	}
	l.disturbed = append(l.disturbed, at)
}

// dueBy returns the latest time at which the controller has done what is due at an instant.
func (l *Log) dueBy(at time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, disturbed := range l.disturbed {
		if !disturbed.After(at.Add(overdueAfter)) && disturbed.Add(recovers).After(at) {
			at = disturbed.Add(recovers)
		}
	}
	return at.Add(overdueAfter)
}

// lastWrote returns when another client last wrote an object, zero if none did.
func (l *Log) lastWrote(uid types.UID) (last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.writes[uid] {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// marginOf returns the safety margin of a Gate.
func marginOf(g *v1alpha1.Gate) time.Duration {
	if g.Spec.Certificates != nil && g.Spec.Certificates.SafetyMargin != nil {
		return g.Spec.Certificates.SafetyMargin.Duration
	}
	return defaultMargin
}

// overdue returns a violation if a version of a Certificate was held between two instants although its margin had begun.
func (h *History) overdue(obj *unstructured.Unstructured, from, until time.Time) []string {
	// The controller cannot remove a value that other clients set as well.
	if obj.GetKind() != certificateKind || !ours(obj) || len(owners(obj, "renewal")) > 1 || h.log.deletedBy(obj.GetUID(), until) {
		return nil
	}
	margin, live := defaultMargin, false
	for _, key := range names(obj, heldByAnnotation) {
		works := true
		for i, v := range h.gates[key] {
			g := &v1alpha1.Gate{}
			if i+1 < len(h.gates[key]) && h.gates[key][i+1].at.Before(from) || runtime.DefaultUnstructuredConverter.FromUnstructured(v.obj.Object, g) != nil {
				continue
			}
			works = works && !g.Spec.Suspend
			margin = min(margin, marginOf(g))
			from = latest(from, h.log.lastWrote(g.UID))
		}
		live = live || works
	}
	deadline, issued := renewal(obj, margin)
	if due := h.log.dueBy(latest(from, deadline)); !live || !issued || !until.After(due) {
		return nil
	}
	return []string{fmt.Sprintf("%s, version %s: it was held past its margin, which began at %s",
		name(obj), obj.GetResourceVersion(), deadline.Format(time.RFC3339))}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// deferredUntil returns when cert-manager renews a Certificate whose renewal is held: at the start of the window in its spec, and according
// to its status once that has observed the spec. The result is empty if cert-manager never renews it.
func deferredUntil(t *unstructured.Unstructured) []time.Time {
	if policy, _, _ := unstructured.NestedString(t.Object, "spec", "renewal", "policy"); policy == "Disabled" {
		return nil
	}
	var all []time.Time
	at := func(field string) time.Time {
		value, _, _ := unstructured.NestedString(t.Object, "status", field)
		parsed, _ := time.Parse(time.RFC3339, value)
		return parsed
	}
	if ready := condition(t, "Ready"); ready != nil && ready.ObservedGeneration == t.GetGeneration() && !at("renewalTime").IsZero() {
		all = append(all, at("renewalTime"))
	}
	windows, _, _ := unstructured.NestedSlice(t.Object, "spec", "renewal", "windows")
	for _, item := range windows {
		window, _ := item.(map[string]any)
		cron, _ := window["cron"].(string)
		all = append(all, begins(cron, at("notBefore"), at("notAfter")))
	}
	return all
}

// begins returns when a yearly window begins within the lifetime of a certificate, or a time in the far future if it does not.
func begins(cron string, from, until time.Time) time.Time {
	numbers := make([]int, 4)
	for i, field := range strings.Fields(cron)[:min(4, len(strings.Fields(cron)))] {
		numbers[i], _ = strconv.Atoi(field)
	}
	for _, year := range slices.Compact([]int{from.Year(), until.Year()}) {
		begin := time.Date(year, time.Month(numbers[3]), numbers[2], numbers[1], numbers[0], 0, 0, time.UTC)
		if begin.After(from) && begin.Before(until) {
			return begin
		}
	}
	return until.AddDate(1, 0, 0)
}
