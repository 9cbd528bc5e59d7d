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

// PathTable makes objects ready to be served at a path that is a secret.
type PathTable[T any] interface {
	// Load makes an object ready and returns its path, if it has one. An error that is a
	// PathError needs a change of the object or its Secret.
	Load(ctx context.Context, obj T) (string, error)
	// Forget removes an object.
	Forget(key types.NamespacedName)
}

// PathError is an error of a PathTable that another try cannot mend.
type PathError interface {
	error
	// Reason in CamelCase for the condition Ready.
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

// Reconciler makes objects ready to be served, and reports their paths. Every replica
// does so for itself, and all report the same.
type Reconciler[O any, T interface {
	*O
	served
	DeepCopy() T
}] struct {
	// Client reads objects from the cache and writes their status.
	client.Client
	// Metrics are those that all controllers of Flux have.
	runtimeCtrl.Metrics
	// Table takes the objects.
	Table PathTable[T]
}

type (
	// Webhooks makes GateReceivers ready to take webhooks.
	Webhooks = Reconciler[v1alpha1.GateReceiver, *v1alpha1.GateReceiver]
	// CalendarReconciler makes CalendarFeeds ready to be read.
	CalendarReconciler = Reconciler[v1alpha1.CalendarFeed, *v1alpha1.CalendarFeed]
)

// refusedInterval is when to look again at an object that is not ready. Its Secret is
// often created a little later.
const refusedInterval = 30 * time.Second

// Reconcile reads an object and its Secret.
func (r *Reconciler[O, T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	start := time.Now() //nolint:forbidigo // measures this reconciliation for the metrics, decides nothing

	obj := T(new(O))
	if err := r.Get(ctx, req.NamespacedName, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.Table.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		// Somebody else's finalizer keeps nothing going that was deleted.
		r.Table.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	defer func() {
		r.RecordDuration(ctx, obj, start)
	}()
	writer := ownwrites.Writer[T]{Client: r.Client, Base: obj.DeepCopy()}
	path, err := r.Table.Load(ctx, obj)
	reportPath(obj, path, err)
	switch writeErr := writer.WriteStatus(ctx, obj); {
	case apierrors.IsConflict(writeErr) && err == nil: // another replica was faster, or the cache is behind
		return ctrl.Result{RequeueAfter: ownwrites.StaleRetry}, nil
	case writeErr != nil:
		return ctrl.Result{}, errors.Join(err, client.IgnoreNotFound(writeErr))
	}
	r.RecordReadiness(ctx, obj)
	r.RecordStalled(ctx, obj)
	if err != nil && !errors.As(err, new(PathError)) {
		return ctrl.Result{}, err
	}
	// A Secret is not watched: that would need the permission to read all of them.
	interval := obj.GetInterval()
	if err != nil {
		interval = min(interval, refusedInterval)
	}
	return ctrl.Result{RequeueAfter: jitter.JitteredIntervalDuration(interval)}, nil
}

// reportPath writes what came of an object into its status. The path stays if it may be
// good still.
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
		return "The calendar is at the path of status.calendarPath"
	}
	return "Webhooks are taken at the path of status.webhookPath"
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

// PathChanged lets updates pass in which another replica has seen another token.
type PathChanged struct {
	predicate.Funcs
}

// Update implements predicate.Predicate.
func (PathChanged) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(served)
	after, ok2 := e.ObjectNew.(served)
	return !ok1 || !ok2 || before.GetPath() != after.GetPath()
}
