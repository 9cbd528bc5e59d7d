package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/pace"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
)

// releaser gives targets their turn that wait to be released by Gates with a pace.
type releaser struct {
	turns *Turns
	tally *tally.Tally
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
}

// release gives as many targets their turn as are due, and notes in the status of a Gate how far that is.
func (r releaser) release(obj *v1alpha1.Gate, state v1alpha1.State, now time.Time) released {
	key, policy := tallied(obj), obj.Spec.Release
	if policy == nil || state == v1alpha1.StateClosed {
		r.end(obj)
		return released{}
	}
	waiting, n := r.turns.Counts(key)
	status := ptr.Deref(obj.Status.Release, v1alpha1.ReleaseStatus{})
	if waiting == 0 && n == 0 && (status.NextAt == nil || !r.tally.IsComplete()) {
		return released{} // there is nothing to release, or nobody knows yet
	}
	if status.NextAt == nil { // the last one is over
		status.Released = 0
	}
	due, next := pace.Due(policy.PerMinute, timeOf(status.NextAt), now)
	done := released{n: n, called: r.turns.Call(key, due, status.LastNamespace)}
	if len(done.called) > 0 {
		status.LastNamespace = done.called[len(done.called)-1].Namespace
	} else if status.NextAt != nil {
		next = status.NextAt.Time // those whose turn it is have not taken it
	}
	status.Released += n
	status.Total, status.NextAt = status.Released+waiting, nil
	if waiting > 0 {
		status.NextAt, done.wake = ptr.To(metav1.NewMicroTime(next)), pace.Wake(next, now)
	}
	obj.Status.Release = &status
	return done
}

// end notes that a Gate has closed, or paces nothing any more.
func (r releaser) end(obj *v1alpha1.Gate) {
	key := tallied(obj)
	switch {
	case obj.Spec.Release == nil:
		obj.Status.Release = nil
	case obj.Status.Release != nil:
		waiting, n := r.turns.Counts(key)
		status := obj.Status.Release.DeepCopy()
		if status.NextAt != nil {
			status.Released += n
			status.Total = max(status.Total, status.Released+waiting)
		}
		status.NextAt = nil
		obj.Status.Release = status
	}
	r.turns.Close(key)
}

func timeOf(at *metav1.MicroTime) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}
