package exception

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/pkg/runtime/predicates"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/view"
)

// EnqueueGate returns a handler that enqueues the Gate of an exception.
func EnqueueGate() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		e, ok := obj.(*v1alpha1.GateException)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: view.GateKeyFor(e)}}
	})
}

// EffectChanged returns a predicate for updates that may change when an exception applies.
func EffectChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*v1alpha1.GateException)
		after, ok2 := e.ObjectNew.(*v1alpha1.GateException)
		return ok1 && ok2 && !apiequality.Semantic.DeepEqual(before.Status.Approvals, after.Status.Approvals)
	}})
}

// SetupWithManager registers the controller of GateExceptions with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, opts enqueue.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.GateException{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, approvalChanged(),
		))).
		Watches(&v1alpha1.GateException{}, ownwrites.EnqueueOthers(&r.versions)).
		Watches(&v1alpha1.GateException{}, handler.EnqueueRequestsFromMapFunc(r.siblings), builder.WithPredicates(EffectChanged())).
		Watches(&v1alpha1.Gate{}, handler.EnqueueRequestsFromMapFunc(r.gateExceptions), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, recordsChanged(),
		))).
		WatchesRawSource(opts.ClockWatch.Source(enqueue.RequestsForAll(r.Client, &v1alpha1.GateExceptionList{}))).
		WithOptions(opts.Controller()).
		Complete(r)
}

// siblings returns requests for the exceptions of the same Gate that have not ended.
func (r *Reconciler) siblings(ctx context.Context, obj client.Object) []reconcile.Request {
	e, ok := obj.(*v1alpha1.GateException)
	if !ok {
		return nil
	}
	return r.requests(ctx, view.GateKeyFor(e))
}

// gateExceptions returns requests for the exceptions of a Gate that have not ended.
func (r *Reconciler) gateExceptions(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requests(ctx, client.ObjectKeyFromObject(obj))
}

func (r *Reconciler) requests(ctx context.Context, gate types.NamespacedName) []reconcile.Request {
	exceptions, err := view.ExceptionsFor(ctx, r.Client, gate)
	if err != nil {
		// Reading the cache fails only while the process shuts down.
		ctrl.LoggerFrom(ctx).Error(err, "unable to list exceptions")
	}
	var requests []reconcile.Request
	for _, e := range exceptions {
		// There may be many expired exceptions, which no longer change.
		if !hasExpired(e) || !e.DeletionTimestamp.IsZero() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e)})
		}
	}
	return requests
}

// approvalChanged returns a predicate for updates with a new approval, valid or not.
func approvalChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		return before[v1alpha1.ApproveRequestedByAnnotation] != after[v1alpha1.ApproveRequestedByAnnotation] ||
			before[v1alpha1.ApproveRequestedAtAnnotation] != after[v1alpha1.ApproveRequestedAtAnnotation]
	}}
}

// recordsChanged returns a predicate for updates that change the exceptions in the status of a Gate. An exception under deletion waits
// for such an update.
func recordsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*v1alpha1.Gate)
		after, ok2 := e.ObjectNew.(*v1alpha1.Gate)
		return ok1 && ok2 && !apiequality.Semantic.DeepEqual(before.Status.Exceptions, after.Status.Exceptions)
	}}
}
