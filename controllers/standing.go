package controllers

import (
	"context"
	"sync"
	"time"

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
// cache has it, with the status that it got from us.
func (r *GateReconciler) wouldDecide(ctx context.Context, own *v1alpha1.Gate, state v1alpha1.State, now time.Time) bool {
	key, latest := client.ObjectKeyFromObject(own), &v1alpha1.Gate{}
	if err := r.Get(ctx, key, latest); err != nil || latest.UID != own.UID || latest.Spec.Suspend || !latest.DeletionTimestamp.IsZero() {
		return false
	}
	exceptions, err := exceptionsOf(ctx, r.Client, key)
	if err != nil {
		return false
	}
	if state == v1alpha1.StateOpened && latest.Generation > own.Generation {
		return false // nobody has seen yet whether the new spec opens by two clocks
	}
	own.Status.DeepCopyInto(&latest.Status)
	return r.decide(ctx, latest, exceptions, now).State == state
}
