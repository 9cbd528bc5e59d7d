package controllers

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/pace"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// releaser gives targets their turn that wait to be released by Gates with a pace, or in waves.
type releaser struct {
	turns  *Turns
	tally  *tally.Tally
	book   *Book
	memory *gateMemory
}

// released is how far a Gate is with the release of its targets.
type released struct {
	// called are those that have their turn now, once the status of the Gate says so: a restart must not give others
	// their turn at once.
	called []target.Key
	// n were released since the status was written last.
	n int64
	// wake is when to go on, zero if nothing waits.
	wake time.Time
	// told is what to tell once the status says so.
	told []waveNews
}

// release gives as many targets their turn as are due, and notes in the status of a Gate how far that is.
func (r releaser) release(obj *v1alpha1.Gate, s tally.Sums, state v1alpha1.State, now time.Time) released {
	key, policy := tallied(obj), obj.Spec.Release
	if policy == nil || state == v1alpha1.StateClosed || obj.Audits() {
		r.end(obj)
		return released{}
	}
	if verdict.HasWaves(obj) {
		return r.inWaves(obj, s, now)
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

// call gives as many targets their turn as are due, of those that may have it.
func (r releaser) call(obj *v1alpha1.Gate, status v1alpha1.ReleaseStatus, now time.Time, may func(target.Key) bool) released {
	key, perMinute := tallied(obj), obj.Spec.Release.PerMinute
	waiting, n := r.turns.Counts(key)
	due, next := math.MaxInt, now
	if perMinute > 0 {
		due, next = pace.Due(perMinute, timeOf(status.NextAt), now)
	}
	called, left := r.turns.Call(key, due, status.LastNamespace, may)
	done := released{n: n, called: called}
	if len(called) > 0 {
		status.LastNamespace = called[len(called)-1].Namespace
	} else if status.NextAt != nil {
		next = status.NextAt.Time // those whose turn it is have not taken it
	}
	status.Released += n
	status.Total = status.Released + waiting
	switch inWaves := verdict.HasWaves(obj); {
	case perMinute == 0 || !inWaves && waiting == 0:
		status.NextAt = nil
	case !inWaves || len(called)+left > 0:
		status.NextAt, done.wake = ptr.To(metav1.NewMicroTime(next)), pace.Wake(next, now)
	default: // something has to happen before anybody may have a turn
	}
	obj.Status.Release = &status
	return done
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

// withoutWaves forgets the waves that a Gate had.
func (r releaser) withoutWaves(obj *v1alpha1.Gate) {
	if obj.Status.Release == nil || obj.Status.Release.Waves == nil {
		return
	}
	obj.Status.Release = obj.Status.Release.DeepCopy()
	obj.Status.Release.Waves = nil
	conditions.Delete(obj, v1alpha1.ReleaseStoppedCondition)
	r.book.Close(tallied(obj))
}

func timeOf(at *metav1.MicroTime) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}
