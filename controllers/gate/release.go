package gate

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/slots"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// releaser grants release slots to the targets of Gates with a pace or waves.
type releaser struct {
	slots    *rollout.Slots
	summary  *summary.Summary
	rollouts *rollout.Rollouts
	state    *State
}

// released is the progress of a release.
type released struct {
	// status is the status of the release, nil if there is none. stop is the reason why the release has stopped, zero if it has not.
	status *v1alpha1.ReleaseStatus
	stop   gate.Stop
	// granted lists the targets that were granted a slot. They are released after the grant has been recorded in the status of the Gate, so
	// that a restart does not grant these slots to other targets.
	granted []target.Key
	// n is the number of targets released since the last write of the status.
	n int64
	// recheck is when to grant further slots, zero if no target waits.
	recheck time.Time
	// waves is the decision on the waves, nil if there was none.
	waves *waveDecision
}

// release grants slots to as many targets of a Gate as its pace and its waves permit now.
func (r releaser) release(obj *v1alpha1.Gate, s summary.Sums, now time.Time) released {
	before := released{status: obj.Status.Release, stop: gate.CurrentStop(obj)}
	if obj.Spec.Release == nil || obj.Status.LastTransition.State == v1alpha1.StateClosed || obj.Audits() {
		return r.end(obj)
	}
	if gate.HasWaves(obj) {
		done := r.inWaves(obj, before, s, now)
		if gate.HasNewProceed(obj, done.status) { // the new request has waited for the previous one
			done.recheck = now
		}
		return done
	}
	before = r.withoutWaves(obj, before)
	waiting, n := r.slots.Counts(obj.UID)
	status := ptr.Deref(before.status, v1alpha1.ReleaseStatus{})
	if waiting == 0 && n == 0 && (status.NextAt == nil || !r.summary.IsComplete()) {
		return before // no target waits, or the targets are unknown
	}
	if status.NextAt == nil { // a new release starts
		status.Released = 0
	}
	return r.grantSlots(obj, released{status: &status, stop: before.stop}, now, rollout.Eligible{All: true})
}

// end ends the release of a Gate that has closed, no longer has spec.release, or has mode Audit.
func (r releaser) end(obj *v1alpha1.Gate) (ended released) {
	if obj.Spec.Release != nil && obj.Status.Release != nil {
		waiting, n := r.slots.Counts(obj.UID)
		ended.status = obj.Status.Release.DeepCopy()
		if w := ended.status.Waves; ended.status.NextAt != nil || w != nil && w.OpenedAt != nil {
			ended.status.Released += n
			ended.status.Total = max(ended.status.Total, ended.status.Released+waiting)
		}
		if w := ended.status.Waves; w != nil {
			w.OpenedAt, w.ReadySince, w.WaitingFor = nil, nil, nil
		}
		ended.status.NextAt = nil
	}
	if !gate.HasWaves(obj) {
		ended = r.withoutWaves(obj, ended)
	}
	r.slots.Forget(obj.UID)
	return ended
}

// withoutWaves removes the state of waves from the status of a Gate that no longer has waves.
func (r releaser) withoutWaves(obj *v1alpha1.Gate, before released) released {
	if before.status == nil || before.status.Waves == nil && before.status.Proceed == nil {
		return before
	}
	status := *before.status
	status.Waves, status.Proceed = nil, nil
	r.rollouts.Forget(obj.UID)
	return released{status: &status}
}

// grantSlots grants slots to as many eligible targets as the pace permits now.
func (r releaser) grantSlots(obj *v1alpha1.Gate, done released, now time.Time, may rollout.Eligible) released {
	perMinute, status := obj.Spec.Release.PerMinute, done.status
	waiting, n := r.slots.Counts(obj.UID)
	due, next := math.MaxInt, now
	if perMinute > 0 {
		due, next = slots.Due(perMinute, timeOrZero(status.NextAt), now)
	}
	called, left := r.slots.Call(obj.UID, due, status.LastNamespace, may)
	done.n, done.granted = n, called
	if len(called) > 0 {
		status.LastNamespace = called[len(called)-1].Namespace
	} else if status.NextAt != nil {
		next = status.NextAt.Time // some targets with a slot have not used it yet
	}
	status.Released += n
	status.Total = status.Released + waiting
	switch inWaves := gate.HasWaves(obj); {
	case perMinute == 0 || !inWaves && waiting == 0:
		status.NextAt = nil
	case !inWaves || len(called)+left > 0:
		status.NextAt, done.recheck = ptr.To(metav1.NewMicroTime(next)), slots.NextCheck(next, now)
	default: // no target is eligible before the next event
	}
	return done
}
