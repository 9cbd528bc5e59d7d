package controllers

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/pace"
	"github.com/fluxcd/gating-controller/internal/target"
)

// release is the part of a paced release that is due.
type release struct {
	// turn are the targets whose turn it is, waiting those whose turn comes later,
	// rest all others of the Gate.
	turn, waiting, rest []*target.Object
	// locked are how many wait until their GateLock is written.
	locked int64
	// next is when the next of those that wait has its turn, recheck when one of
	// them must not wait any longer.
	next, recheck time.Time
	status        v1alpha1.ReleaseStatus
}

// settlePaced settles the targets of a Gate that is open, those that it holds as
// many as are due.
func (r *GateReconciler) settlePaced(ctx context.Context, obj *v1alpha1.Gate, targets []*target.Object, want order) *outcomes {
	due := r.due(obj, targets, want)
	result := r.settleAll(ctx, due.rest, want)
	turns := r.settleAll(ctx, due.turn, want)
	result.add(turns)
	result.held += int64(len(due.waiting)) + due.locked
	result.again(due.recheck)
	if due.locked == 0 || len(due.turn)+len(due.waiting) > 0 { // else it stays as it is
		result.again(r.note(obj, due, turns.released, want.now))
	}
	return result
}

// due returns which targets are due. Those that are not held have nothing to wait
// for; of a Certificate there is no time to.
func (r *GateReconciler) due(obj *v1alpha1.Gate, targets []*target.Object, want order) release {
	due := release{status: r.released(obj)}
	name := client.ObjectKeyFromObject(obj).String()
	var held []*target.Object
	for _, t := range targets {
		state := target.Of(&t.Unstructured).Observe(t, us)
		if state == target.Free || state == target.Foreign || !t.GetDeletionTimestamp().IsZero() || !slices.Contains(heldBy(&t.Unstructured), name) {
			due.rest = append(due.rest, t)
			continue
		}
		if want.keeps(t) {
			due.locked++
			continue
		}
		late, recheck := r.late(t, state, want)
		switch {
		case late:
			due.rest = append(due.rest, t)
			continue
		case due.recheck.IsZero() || !recheck.IsZero() && recheck.Before(due.recheck):
			due.recheck = recheck
		}
		held = append(held, t)
	}
	if len(held) == 0 {
		return due
	}
	if due.status.NextAt == nil { // the last one is over
		due.status.Released = 0
	}
	n, next := pace.Due(obj.Spec.Release.PerMinute, timeOf(due.status.NextAt), want.now)
	due.next = next
	due.turn, due.waiting = pace.Take(held, n, due.status.LastNamespace, func(t *target.Object) pace.Item { return turnOf(obj, t) })
	return due
}

// late returns whether a Certificate that waits for its turn has to be renewed now,
// and if not, when it has to.
func (r *GateReconciler) late(t *target.Object, state target.State, want order) (bool, time.Time) {
	if !isCertificate(t) {
		return false, time.Time{}
	}
	terms := r.termsFor(t, []*v1alpha1.Gate{want.gate})
	terms.Strict = false // a strict Gate lets nothing go while it is closed, and this one is open
	plan := target.Of(&t.Unstructured).Plan(t, state, terms, want.now)
	return plan.Exempt != target.NotExempt, plan.Recheck
}

func turnOf(gate *v1alpha1.Gate, t *target.Object) pace.Item {
	item := pace.Item{Namespace: t.GetNamespace(), Name: t.GetKind() + "/" + t.GetName()}
	if isCertificate(t) {
		notAfter, _, _ := unstructured.NestedString(t.Object, "status", "notAfter")
		item.Expiry, _ = time.Parse(time.RFC3339, notAfter) // one that has none has its turn last
	}
	item.Failed = hasFailed(gate, t)
	return item
}

// hasFailed returns whether a Gate has reported a failure of a target, for one of the
// reasons if there are any.
func hasFailed(gate *v1alpha1.Gate, t *target.Object, reasons ...string) bool {
	return slices.ContainsFunc(gate.Status.Failures, func(f v1alpha1.TargetFailure) bool {
		return (len(reasons) == 0 || slices.Contains(reasons, f.Reason)) && f.Kind == t.GetKind() && f.Namespace == t.GetNamespace() && f.Name == t.GetName()
	})
}

// note writes into the status of a Gate how far a release is, and returns when to
// go on with it.
func (r *GateReconciler) note(gate *v1alpha1.Gate, due release, released int64, now time.Time) time.Time {
	waiting := int64(len(due.turn)+len(due.waiting)) + due.locked - released
	if waiting == 0 && released == 0 && gate.Status.Release == nil {
		return time.Time{} // there was nothing to release
	}
	status := due.status
	status.Released += released
	status.Total, status.NextAt = status.Released+waiting, nil
	if n := len(due.turn); n > 0 {
		status.LastNamespace = due.turn[n-1].GetNamespace()
	}
	var wake time.Time
	if waiting > 0 {
		at := metav1.NewMicroTime(due.next)
		status.NextAt, wake = &at, pace.Wake(due.next, now)
	}
	r.releases.Store(client.ObjectKeyFromObject(gate), status)
	gate.Status.Release = &status
	return wake
}

// released returns how far the release of a Gate is. What this process has noted
// last counts: the cache may have the Gate as it was before.
func (r *GateReconciler) released(gate *v1alpha1.Gate) v1alpha1.ReleaseStatus {
	if known, ok := r.releases.Load(client.ObjectKeyFromObject(gate)); ok {
		if known, ok := known.(v1alpha1.ReleaseStatus); ok {
			return known
		}
	}
	return ptr.Deref(gate.Status.Release, v1alpha1.ReleaseStatus{})
}

// endRelease notes that a Gate has closed, or paces nothing any more.
func (r *GateReconciler) endRelease(gate *v1alpha1.Gate) {
	key := client.ObjectKeyFromObject(gate)
	if gate.Spec.Release == nil {
		gate.Status.Release = nil
		r.releases.Delete(key)
		return
	}
	if status := r.released(gate); gate.Status.Release != nil {
		status.NextAt = nil
		gate.Status.Release = &status
		r.releases.Store(key, status)
	}
}

func timeOf(at *metav1.MicroTime) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}
