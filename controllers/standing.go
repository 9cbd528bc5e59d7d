package controllers

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// standingFor is how long a decision is taken to stand before it is looked at again.
const standingFor = 100 * time.Millisecond

// standing returns a function that tells whether a decision still stands. To hold or to
// release thousands of targets takes minutes, in which the Gate may be told otherwise.
func (r *GateReconciler) standing(ctx context.Context, obj *v1alpha1.Gate, d gate.Decision) func() bool {
	var mu sync.Mutex
	stands, looked, own := true, r.Clock.Now(), obj.DeepCopy()
	// What was decided by two clocks is not asked for again.
	own.Status.ObservedGeneration = own.Generation
	conditions.Delete(own, meta.ReadyCondition)
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		now := r.Clock.Now()
		switch since := now.Sub(looked); {
		case !stands:
		case d.State == v1alpha1.StateOpened && d.Next != nil && !now.Before(d.Next.At.Time):
			stands = false
		case since >= standingFor || since < 0:
			stands, looked = r.wouldDecide(ctx, own, d.State, now), now
		}
		return stands
	}
}

// wouldDecide returns whether a Gate would be brought to a state at an instant, as the
// cache has it, with the status that it got from us. What is requested while that is so is
// part of the status from then on: it is looked at once, and Flux may remove the
// annotation before all targets are done. A Gate that closes does not wait for what has to
// be read for that.
func (r *GateReconciler) wouldDecide(ctx context.Context, own *v1alpha1.Gate, state v1alpha1.State, now time.Time) bool {
	latest := r.latestOf(ctx, own)
	if latest == nil {
		return false
	}
	exceptions, err := exceptionsOf(ctx, r.Client, client.ObjectKeyFromObject(own))
	if err != nil {
		return false
	}
	if state == v1alpha1.StateOpened && latest.Generation > own.Generation {
		return false // nobody has seen yet whether the new spec opens by two clocks
	}
	limited := ctx
	if state == v1alpha1.StateClosed {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, standingFor)
		defer cancel()
	}
	own.Status.DeepCopyInto(&latest.Status)
	before := latest.DeepCopy()
	v := r.decide(limited, latest, exceptions, now)
	switch {
	case v.State != state, v.err != nil && len(v.handled) > 0 && state == v1alpha1.StateOpened:
		return false // what was requested is handled when it is decided anew, and the time asked for until it is known
	case len(v.handled) > 0:
		if err := r.remember(ctx, before, latest); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "A request is not remembered yet")
			return true // the annotation is looked at once more
		}
		r.recordRequests(ctx, latest, v.handled)
		latest.Status.DeepCopyInto(&own.Status)
	case v.err == nil:
		latest.Status.DeepCopyInto(&own.Status)
	}
	return true
}

// remember writes what was requested into the status of a Gate, and nothing else.
func (r *GateReconciler) remember(ctx context.Context, before, obj *v1alpha1.Gate) error {
	written, status := before.DeepCopy(), obj.Status.DeepCopy()
	written.Status.Requests, written.Status.LastRequest = status.Requests, status.LastRequest
	return r.Status().Patch(ctx, written, locked(before), client.FieldOwner(v1alpha1.FieldManager))
}

// latestOf returns a Gate as the cache has it, nil if nobody is to go on with it.
func (r *GateReconciler) latestOf(ctx context.Context, own *v1alpha1.Gate) *v1alpha1.Gate {
	latest := &v1alpha1.Gate{}
	err := r.Get(ctx, client.ObjectKeyFromObject(own), latest)
	if err != nil || latest.UID != own.UID || latest.Spec.Suspend || !latest.DeletionTimestamp.IsZero() {
		return nil
	}
	return latest
}

// isAsItWas returns whether nobody has told a Gate otherwise since it was read.
func (r *GateReconciler) isAsItWas(ctx context.Context, own *v1alpha1.Gate) bool {
	latest := r.latestOf(ctx, own)
	return latest != nil && latest.Generation <= own.Generation
}
