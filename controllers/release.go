package controllers

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// release gives as many targets their turn as are due, and notes in the status of a Gate how far that is.
func (r releaser) release(obj *v1alpha1.Gate, s tally.Sums, state v1alpha1.State, now time.Time) released {
	key, policy := tallied(obj), obj.Spec.Release
	if policy == nil || state == v1alpha1.StateClosed || obj.Audits() {
		r.end(obj)
		return released{}
	}
	if verdict.HasWaves(obj) {
		done := r.inWaves(obj, s, now)
		if gate.HasNewProceed(obj) { // it waited for the one before
			done.wake = now
		}
		return done
	}
	r.withoutWaves(obj)
	waiting, n := r.turns.Counts(key)
	status := ptr.Deref(obj.Status.Release, v1alpha1.ReleaseStatus{})
	if waiting == 0 && n == 0 && (status.NextAt == nil || !r.tally.IsComplete()) {
		return released{} // there is nothing to release, or nobody knows yet
	}
	if status.NextAt == nil { // the last one is over
		status.Released = 0
	}
	return r.call(obj, status, now, func(target.Key) bool { return true })
}

// end notes that a Gate has closed, or releases all its targets at once.
func (r releaser) end(obj *v1alpha1.Gate) {
	key := tallied(obj)
	switch {
	case obj.Spec.Release == nil:
		obj.Status.Release = nil
	case obj.Status.Release != nil:
		waiting, n := r.turns.Counts(key)
		status := obj.Status.Release.DeepCopy()
		if status.NextAt != nil || status.Waves != nil && status.Waves.OpenedAt != nil {
			status.Released += n
			status.Total = max(status.Total, status.Released+waiting)
		}
		if w := status.Waves; w != nil {
			w.OpenedAt, w.ReadySince, w.WaitingFor = nil, nil, nil
		}
		status.NextAt = nil
		obj.Status.Release = status
	}
	conditions.Delete(obj, v1alpha1.ReleaseStoppedCondition)
	if !verdict.HasWaves(obj) {
		r.withoutWaves(obj)
	}
	r.turns.Close(key)
}
