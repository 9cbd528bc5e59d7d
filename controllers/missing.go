package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// reconcileMissing sees to the targets of a Gate that the cache lacks.
func (r *GateReconciler) reconcileMissing(ctx context.Context, key types.NamespacedName, now time.Time) (ctrl.Result, error) {
	r.GateMetrics.Delete(key)
	r.releases.Delete(key)
	r.sightings.Delete(key)
	if key.Name == "" {
		held, err := r.Targets.HeldBy(ctx, key.String())
		result := r.settleAll(ctx, held, order{now: now})
		r.refreshWithout(ctx, "", result, now, nil, held)
		if err := errors.Join(err, result.err()); err != nil {
			return ctrl.Result{}, err
		}
		return r.lookAgain(result, int64(len(held)) > result.released), nil
	}
	if exists, err := r.exists(ctx, key); err != nil || exists {
		return ctrl.Result{}, err // another shard of the controller is in charge of it
	}
	stands := func() bool { // until somebody makes one of that name, which comes here then
		return !r.watches(key.Namespace) || apierrors.IsNotFound(r.Get(ctx, key, &v1alpha1.Gate{}))
	}
	want := order{now: now, stands: stands, locks: r.Locks.Put(ctx, key.String(), nil), Want: target.Want{Gate: key.String()}}
	naming, outcome, err := r.settleWithout(ctx, key, want)
	if err := errors.Join(err, outcome.err()); err != nil {
		return ctrl.Result{}, err
	}
	return r.lookAgain(outcome, naming > 0), nil
}

// missingInterval is how often targets are held anew that name a Gate which does
// not exist, and how often those are looked at that are held in nobody's name. Events do
// that at once; each name that somebody makes up costs a request to the API server.
const missingInterval = 10 * time.Minute

// lookAgain returns when to look at the targets of no Gate again: when one of them asks for
// it, and every missingInterval if some of them stay held.
func (r *GateReconciler) lookAgain(outcome *outcomes, held bool) ctrl.Result {
	result := ctrl.Result{}
	if held {
		result.RequeueAfter = missingInterval
	}
	if left := outcome.recheck.Sub(r.Clock.Now()); !outcome.recheck.IsZero() && (!held || left < missingInterval) {
		result.RequeueAfter = max(left, time.Millisecond)
	}
	return result
}

// exists asks the API server for a Gate, unless it is none that this process
// can see or that can be, or another shard is known to have it: each target that
// changes there brings its Gates here.
func (r *GateReconciler) exists(ctx context.Context, key types.NamespacedName) (bool, error) {
	if !r.watches(key.Namespace) || len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return false, nil
	}
	if r.AllGates != nil {
		if known, err := gateExists(ctx, r.AllGates, key); known && err == nil {
			return true, nil
		}
	}
	return gateExists(ctx, r.APIReader, key)
}

// gateExists asks for a Gate.
func gateExists(ctx context.Context, reader client.Reader, key types.NamespacedName) (bool, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	err := reader.Get(ctx, key, obj)
	return err == nil, client.IgnoreNotFound(err)
}

// watches returns whether the Gates of a namespace are reconciled.
func (r *GateReconciler) watches(namespace string) bool {
	_, ok := r.Namespaces[namespace]
	return ok || len(r.Namespaces) == 0
}

// settleWithout settles the targets of a Gate that is no more, or is out of
// reach: those that name it are held rather than let through, and all others
// that it holds are released as long as that stands. It returns how many name it, and an
// error if they could not be read.
func (r *GateReconciler) settleWithout(ctx context.Context, key types.NamespacedName, want order) (int, *outcomes, error) {
	result := &outcomes{}
	naming, err := r.Targets.Naming(ctx, key.String())
	if err != nil {
		return 0, result, err
	}
	held, err := r.Targets.HeldBy(ctx, key.String())
	if err != nil {
		return 0, result, err
	}
	named := map[types.UID]bool{}
	byReason := map[string][]*target.Object{}
	for _, t := range naming {
		named[t.GetUID()] = true
		reason := v1alpha1.GateNotFoundReason
		if !r.watches(key.Namespace) || !r.reaches(t.GetNamespace(), key.Namespace) {
			reason = v1alpha1.AccessDeniedReason
		}
		byReason[reason] = append(byReason[reason], t)
	}
	r.refreshWithout(ctx, key.String(), result, want.now, naming, held)
	for reason, targets := range byReason {
		refused := target.Want{Gate: key.String(), Closed: true, Refusal: reason}
		result.merge(r.settleAll(ctx, targets, order{now: want.now, locks: want.locks, Want: refused}))
	}
	result.merge(r.activate(ctx, naming, order{now: want.now}))
	held = slices.DeleteFunc(held, func(t *target.Object) bool { return named[t.GetUID()] })
	result.merge(r.settleAll(ctx, held, want))
	want.report(result, key)
	return len(naming), result, nil
}
