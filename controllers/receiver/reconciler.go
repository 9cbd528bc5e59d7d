// Package receiver reconciles GateReceivers and CalendarFeeds. It alone writes their status.
package receiver

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/fluxcd/pkg/runtime/predicates"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
)

// PathTable contains the objects that are served at secret paths.
type PathTable[T any] interface {
	// Load prepares an object and returns its path, empty if it has none. It returns a PathError if the error persists until the object or
	// its Secret is changed.
	Load(ctx context.Context, obj T) (string, error)
	// Forget removes an object.
	Forget(key types.NamespacedName)
}

// PathError is an error that a retry cannot resolve.
type PathError interface {
	error
	// Reason returns the reason for the condition Ready, in CamelCase.
	Reason() string
}

// served is an object that is served at a path.
type served interface {
	conditions.Setter
	GetInterval() time.Duration
	GetPath() string
	SetPath(path string)
	SetObservedGeneration(generation int64)
	SetLastHandledReconcileRequest(token string)
}

// Reconciler prepares objects to be served, and reports their paths. Every replica does this, and all replicas report the same paths.
type Reconciler[O any, T interface {
	*O
	served
	DeepCopy() T
}] struct {
	// Client reads objects from the cache and writes their status.
	client.Client
	// Metrics are the metrics of Flux controllers.
	runtimeCtrl.Metrics
	// Table serves the objects.
	Table PathTable[T]
}

type (
	// Webhooks reconciles GateReceivers.
	Webhooks = Reconciler[v1alpha1.GateReceiver, *v1alpha1.GateReceiver]
	// CalendarReconciler reconciles CalendarFeeds.
	CalendarReconciler = Reconciler[v1alpha1.CalendarFeed, *v1alpha1.CalendarFeed]
)

// refusedInterval bounds the resync interval of an object that is not ready, because its Secret is often created soon afterwards.
const refusedInterval = 30 * time.Second

// Reconcile reads an object and its Secret.
func (r *Reconciler[O, T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	start := time.Now() //nolint:forbidigo // only measures the duration for the metrics

	obj := T(new(O))
	if err := r.Get(ctx, req.NamespacedName, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.Table.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		// An object under deletion is not served, even if a finalizer delays its deletion.
		r.Table.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	defer func() {
		r.RecordDuration(ctx, obj, start)
	}()
	writer := ownwrites.Writer[T]{Client: r.Client, Base: obj.DeepCopy()}
	path, err := r.Table.Load(ctx, obj)
	reportPath(obj, path, err)
	isTemporary := err != nil && !errors.As(err, new(PathError))
	switch writeErr := writer.WriteStatus(ctx, obj); {
	case apierrors.IsConflict(writeErr) && !isTemporary: // another replica has written first, or the cache is behind
		return ctrl.Result{RequeueAfter: ownwrites.StaleRetry}, nil
	case writeErr != nil:
		return ctrl.Result{}, errors.Join(err, client.IgnoreNotFound(writeErr))
	}
	r.RecordReadiness(ctx, obj)
	r.RecordStalled(ctx, obj)
	if isTemporary {
		return ctrl.Result{}, err
	}
	// Secrets are not watched, because that would require permission to read all of them.
	interval := obj.GetInterval()
	if err != nil {
		interval = min(interval, refusedInterval)
	}
	return ctrl.Result{RequeueAfter: jitter.JitteredIntervalDuration(interval)}, nil
}

// reportPath records the result in the status of an object. A temporary error does not remove the path.
func reportPath(obj served, path string, err error) {
	obj.SetObservedGeneration(obj.GetGeneration())
	if v, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		obj.SetLastHandledReconcileRequest(v)
	}
	conditions.Delete(obj, meta.StalledCondition)
	refused := PathError(nil)
	switch {
	case err == nil:
		obj.SetPath(path)
		conditions.MarkTrue(obj, meta.ReadyCondition, meta.SucceededReason, "%s", readyMessage(obj))
	case errors.As(err, &refused):
		obj.SetPath(path)
		conditions.MarkFalse(obj, meta.ReadyCondition, refused.Reason(), "%s", err)
		if refused.Reason() != v1alpha1.TokenNotFoundReason {
			conditions.MarkStalled(obj, refused.Reason(), "%s", err)
		}
	default:
		conditions.MarkFalse(obj, meta.ReadyCondition, meta.FailedReason, "%s", err)
	}
}

func readyMessage(obj served) string {
	if _, ok := obj.(*v1alpha1.CalendarFeed); ok {
		return msgCalendarServed
	}
	return msgWebhooksServed
}

// SetupWithManager registers the controller with a manager.
func (r *Reconciler[O, T]) SetupWithManager(mgr ctrl.Manager, opts enqueue.Options) error {
	options := opts.Controller()
	options.NeedLeaderElection = ptr.To(false)
	return ctrl.NewControllerManagedBy(mgr).
		For(T(new(O)), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, PathChanged{},
		))).
		WithOptions(options).
		Complete(r)
}

// PathChanged is a predicate for updates in which another replica has reported a different path.
type PathChanged struct {
	predicate.Funcs
}

// Update implements predicate.Predicate.
func (PathChanged) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(served)
	after, ok2 := e.ObjectNew.(served)
	return !ok1 || !ok2 || before.GetPath() != after.GetPath()
}
