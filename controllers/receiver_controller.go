package controllers

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimeCtrl "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/patch"
	"github.com/fluxcd/pkg/runtime/predicates"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// ReceiverTable makes GateReceivers ready to take webhooks.
type ReceiverTable interface {
	// Load makes a receiver ready and returns the path of its webhook, if it has one. An
	// error that is a ReceiverError needs a change of the receiver or its Secret.
	Load(ctx context.Context, obj *v1alpha1.GateReceiver) (string, error)
	// Forget removes a receiver.
	Forget(key types.NamespacedName)
}

// ReceiverError is an error of a ReceiverTable that another try cannot mend.
type ReceiverError interface {
	error
	// Reason in CamelCase for the condition Ready.
	Reason() string
}

// ReceiverReconciler makes GateReceivers ready to take webhooks. Every replica does so
// for itself, and all report the same.
type ReceiverReconciler struct {
	// Client reads receivers from the cache and writes their status.
	client.Client
	// Metrics are those that all controllers of Flux have.
	runtimeCtrl.Metrics
	// Table takes the receivers.
	Table ReceiverTable
}

// refusedInterval is when to look again at a receiver that is not ready. Its Secret is
// often created a little later.
const refusedInterval = 30 * time.Second

var receiverPatchOptions = []patch.Option{
	patch.WithOwnedConditions{Conditions: []string{meta.ReadyCondition, meta.StalledCondition}},
	patch.WithFieldOwner(v1alpha1.FieldManager),
	patch.WithStatusObservedGeneration{},
}

// Reconcile reads a receiver and its Secret.
func (r *ReceiverReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	start := time.Now() //nolint:forbidigo // measures this reconciliation for the metrics, decides nothing

	obj := &v1alpha1.GateReceiver{}
	if err := r.Get(ctx, req.NamespacedName, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.Table.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.DeletionTimestamp.IsZero() {
		// Somebody else's finalizer keeps nothing going that was deleted.
		r.Table.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	defer func() {
		r.RecordDuration(ctx, obj, start)
	}()
	patcher := patch.NewSerialPatcher(obj, r.Client)
	path, err := r.Table.Load(ctx, obj)
	reportReceiver(obj, path, err)
	if patchErr := patcher.Patch(ctx, obj, receiverPatchOptions...); patchErr != nil {
		return ctrl.Result{}, errors.Join(err, client.IgnoreNotFound(patchErr))
	}
	r.RecordReadiness(ctx, obj)
	r.RecordStalled(ctx, obj)
	if err != nil && !errors.As(err, new(ReceiverError)) {
		return ctrl.Result{}, err
	}
	// A Secret is not watched: that would need the permission to read all of them.
	interval := obj.GetInterval()
	if err != nil {
		interval = min(interval, refusedInterval)
	}
	return ctrl.Result{RequeueAfter: jitter.JitteredIntervalDuration(interval)}, nil
}

// reportReceiver writes what came of a receiver into its status. The path stays if it
// may be good still.
func reportReceiver(obj *v1alpha1.GateReceiver, path string, err error) {
	if v, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		obj.Status.SetLastHandledReconcileRequest(v)
	}
	conditions.Delete(obj, meta.StalledCondition)
	refused := ReceiverError(nil)
	switch {
	case err == nil:
		obj.Status.WebhookPath = path
		conditions.MarkTrue(obj, meta.ReadyCondition, meta.SucceededReason, "Webhooks are taken at the path of status.webhookPath")
	case errors.As(err, &refused):
		obj.Status.WebhookPath = path
		conditions.MarkFalse(obj, meta.ReadyCondition, refused.Reason(), "%s", err)
		if refused.Reason() == v1alpha1.InvalidCELExpressionReason {
			conditions.MarkStalled(obj, refused.Reason(), "%s", err)
		}
	default:
		conditions.MarkFalse(obj, meta.ReadyCondition, meta.FailedReason, "%s", err)
	}
}

// SetupWithManager registers the controller of GateReceivers with a manager.
func (r *ReceiverReconciler) SetupWithManager(mgr ctrl.Manager, opts Options) error {
	options := opts.controller()
	options.NeedLeaderElection = ptr.To(false)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.GateReceiver{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, pathChanged{},
		))).
		WithOptions(options).
		Complete(r)
}

// pathChanged lets updates pass in which another replica has seen another token.
type pathChanged struct {
	predicate.Funcs
}

// Update implements predicate.Predicate.
func (pathChanged) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.GateReceiver)
	after, ok2 := e.ObjectNew.(*v1alpha1.GateReceiver)
	return !ok1 || !ok2 || before.Status.WebhookPath != after.Status.WebhookPath
}
