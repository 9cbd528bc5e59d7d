package controllers

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// standingFor is how long a decision is taken to stand before it is looked at again.
const standingFor = 100 * time.Millisecond

// standing is a decision while targets are brought to it. To hold or to release thousands
// of them may take minutes, in which the Gate may be told otherwise.
type standing struct {
	*GateReconciler
	state v1alpha1.State

	mu     sync.Mutex
	stands bool
	looked time.Time
	// own is the Gate with the status that it got from us.
	own *v1alpha1.Gate
	// stored is the status that the API server has, which may lack what was decided.
	stored *v1alpha1.GateStatus
}

func (r *GateReconciler) standing(obj *v1alpha1.Gate, stored *v1alpha1.GateStatus, state v1alpha1.State) *standing {
	s := &standing{GateReconciler: r, state: state, stands: true, looked: r.Clock.Now(), own: obj.DeepCopy(), stored: stored.DeepCopy()}
	// What was decided by two clocks is not asked for again.
	s.own.Status.ObservedGeneration = s.own.Generation
	conditions.Delete(s.own, meta.ReadyCondition)
	return s
}

// holds returns whether the decision still stands.
func (s *standing) holds(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := s.Clock.Now(), s.own.Status.NextTransition
	switch since := now.Sub(s.looked); {
	case !s.stands:
	case s.state == v1alpha1.StateOpened && next != nil && !now.Before(next.At.Time):
		s.stands = false
	case since >= standingFor || since < 0:
		s.stands, s.looked = s.wouldDecide(ctx, now), now
	}
	return s.stands
}

// remembered takes what was requested meanwhile over into a status, which is written when
// all is done.
func (s *standing) remembered(status *v1alpha1.GateStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	takeRequests(status, &s.own.Status)
}

// takeRequests takes over what was requested, and what follows from it: others take a Gate
// for closed from NextTransition on.
func takeRequests(to, from *v1alpha1.GateStatus) {
	from = from.DeepCopy()
	to.Requests, to.HandledRequests, to.LastRequest, to.NextTransition = from.Requests, from.HandledRequests, from.LastRequest, from.NextTransition
	to.RequestedAt, to.ResetToDefaultAt = from.RequestedAt, from.ResetToDefaultAt
}

// wouldDecide returns whether the Gate would be brought to the state at an instant, with
// the status that it got from us. What is requested while that is so is part of the status
// from then on: it is looked at once, and Flux may remove the annotation before all targets
// are done. A Gate that closes does not wait for what has to be read for that.
func (s *standing) wouldDecide(ctx context.Context, now time.Time) bool {
	latest := s.latestOf(ctx, s.own)
	if latest == nil {
		return false
	}
	exceptions, err := exceptionsOf(ctx, s.Client, client.ObjectKeyFromObject(s.own))
	if err != nil {
		return false
	}
	if s.state == v1alpha1.StateOpened && latest.Generation > s.own.Generation {
		return false // nobody has seen yet whether the new spec opens by two clocks
	}
	limited := ctx
	if s.state == v1alpha1.StateClosed {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, standingFor)
		defer cancel()
	}
	s.own.Status.DeepCopyInto(&latest.Status)
	v := s.decide(limited, latest, exceptions, now)
	switch {
	case v.State != s.state, v.err != nil && len(v.handled) > 0 && s.state == v1alpha1.StateOpened:
		return false // what was requested is handled when it is decided anew, and the time asked for until it is known
	case len(v.handled) > 0:
		if v.err == nil { // else what comes next is not known
			latest.Status.NextTransition = v.Next
			latest.Status.RequestedAt, latest.Status.ResetToDefaultAt = v.RequestedAt, v.ResetToDefaultAt
		}
		before := latest.DeepCopy()
		s.stored.DeepCopyInto(&before.Status)
		if err := s.remember(ctx, before, latest); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "A request is not remembered yet")
			return true // the annotation is looked at once more
		}
		takeRequests(s.stored, &latest.Status)
		s.recordRequests(ctx, latest, v.handled)
		latest.Status.DeepCopyInto(&s.own.Status)
	case v.err == nil:
		latest.Status.DeepCopyInto(&s.own.Status)
	}
	return true
}

// remember writes what was requested into the status of a Gate, and nothing else. Flux may
// have removed the annotation since it was read. What matters is that nobody else has
// written what is remembered.
func (r *GateReconciler) remember(ctx context.Context, before, obj *v1alpha1.Gate) error {
	for retry := 0; ; retry++ {
		written := before.DeepCopy()
		takeRequests(&written.Status, &obj.Status)
		err := r.gates().Status().Patch(ctx, written, locked(before), client.FieldOwner(v1alpha1.FieldManager))
		if !apierrors.IsConflict(err) || retry == conflictRetries {
			return err
		}
		latest := &v1alpha1.Gate{}
		if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(obj), latest); err != nil {
			return err
		}
		known := latest.DeepCopy()
		takeRequests(&known.Status, &before.Status)
		if changes, _ := client.MergeFrom(latest).Data(known); latest.UID != before.UID || string(changes) != "{}" {
			return err
		}
		before = latest
	}
}

// latestOf returns a Gate as it is, nil if nobody is to go on with it.
func (r *GateReconciler) latestOf(ctx context.Context, own *v1alpha1.Gate) *v1alpha1.Gate {
	latest := &v1alpha1.Gate{}
	err := r.gates().Get(ctx, client.ObjectKeyFromObject(own), latest)
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

// isSuspended returns whether nobody will go on with a Gate until it is resumed.
func (r *GateReconciler) isSuspended(ctx context.Context, own *v1alpha1.Gate) bool {
	latest := &v1alpha1.Gate{}
	return own != nil && r.gates().Get(ctx, client.ObjectKeyFromObject(own), latest) == nil && latest.Spec.Suspend
}
