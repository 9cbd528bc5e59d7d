package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// reconcileMissing sees to the targets of a Gate that the cache lacks.
func (r *GateReconciler) reconcileMissing(ctx context.Context, key types.NamespacedName, now time.Time) (ctrl.Result, error) {
	r.GateMetrics.Delete(key)
	if key.Name == "" {
		held, err := r.Targets.HeldBy(ctx, key.String())
		return ctrl.Result{}, errors.Join(err, r.settleAll(ctx, held, order{now: now}).err())
	}
	if exists, err := r.exists(ctx, key); err != nil || exists {
		return ctrl.Result{}, err // another shard of the controller is in charge of it
	}
	waiting, err := r.settleWithout(ctx, key, now)
	if err != nil || waiting == 0 {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: missingInterval}, nil
}

// missingInterval is how often targets are held anew that name a Gate which does
// not exist. Events do that at once; each name that somebody makes up costs a
// request to the API server.
const missingInterval = 10 * time.Minute

// exists asks the API server for a Gate, unless it is none that this process
// can see or that can be.
func (r *GateReconciler) exists(ctx context.Context, key types.NamespacedName) (bool, error) {
	if !r.watches(key.Namespace) || len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return false, nil
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	err := r.APIReader.Get(ctx, key, obj)
	return err == nil, client.IgnoreNotFound(err)
}

// watches returns whether the Gates of a namespace are reconciled.
func (r *GateReconciler) watches(namespace string) bool {
	_, ok := r.Namespaces[namespace]
	return ok || len(r.Namespaces) == 0
}

// settleWithout settles the targets of a Gate that is no more, or is out of
// reach: those that name it are held rather than let through, and all others
// that it holds are released. It returns how many are held.
func (r *GateReconciler) settleWithout(ctx context.Context, key types.NamespacedName, now time.Time) (int, error) {
	if err := r.Locks.Put(ctx, key.String(), nil); err != nil {
		return 0, err
	}
	naming, err := r.Targets.Naming(ctx, key.String())
	if err != nil {
		return 0, err
	}
	held, err := r.Targets.HeldBy(ctx, key.String())
	if err != nil {
		return 0, err
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
	result := &outcomes{}
	for reason, targets := range byReason {
		result.merge(r.settleAll(ctx, targets, order{now: now, Want: target.Want{Gate: key.String(), Closed: true, Refusal: reason}}))
	}
	result.merge(r.activate(ctx, naming, order{now: now}))
	held = slices.DeleteFunc(held, func(t *target.Object) bool { return named[t.GetUID()] })
	result.merge(r.settleAll(ctx, held, order{now: now, Want: target.Want{Gate: key.String()}}))
	return len(naming), result.err()
}

// closedElsewhere returns whether a target is governed by a Gate, other than
// one, that is not open.
func (r *GateReconciler) closedElsewhere(ctx context.Context, obj *unstructured.Unstructured, than string) (bool, error) {
	names, unopened := namedBy(obj), map[string]bool{}
	for _, name := range names {
		unopened[name] = true
	}
	for _, namespace := range namespacesOf(r.Namespaces) {
		// The cache lacks the Gates of other shards. This is rare enough to ask.
		gates := &v1alpha1.GateList{}
		if err := r.APIReader.List(ctx, gates, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		for i := range gates.Items {
			gate := &gates.Items[i]
			name := client.ObjectKeyFromObject(gate).String()
			if gate.DeletionTimestamp.IsZero() && governs(gate, obj, names) {
				unopened[name] = !conditions.IsTrue(gate, v1alpha1.OpenedCondition)
			}
		}
	}
	delete(unopened, than)
	for _, closed := range unopened {
		if closed {
			return true, nil
		}
	}
	return false, nil
}
