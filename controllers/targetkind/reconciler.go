// Package targetkind starts the cache of each kind of target when its CRD is served.
package targetkind

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Delays of retries while a new kind is not served. A CRD that conflicts with another one is never served.
const (
	DefinitionRetry    = 500 * time.Millisecond
	DefinitionPatience = 15 * time.Second
)

// Reconciler starts and stops the informers of targets and GateLocks when their CRDs are created and deleted.
type Reconciler struct {
	Gates   client.Reader
	Targets *view.TargetCache
	Locks   *view.LockCache
	Summary *summary.Summary
	Queues  enqueue.Enqueuer
	// AllGates caches the metadata of the Gates of all shards. It is nil without shards.
	AllGates ctrlcache.Cache

	// Ready is closed once the informers of all installed kinds have been started.
	Ready chan struct{}
	// Unserved delays the next check of a CRD that is not served.
	Unserved workqueue.TypedRateLimiter[string]
}

// Start starts the informers of the installed kinds and of the GateLocks.
func (r *Reconciler) Start(ctx context.Context) error {
	if _, err := r.Locks.Sync(ctx); err != nil && !errors.Is(err, view.ErrNotInstalled) {
		return err
	}
	for _, adapter := range target.All() {
		if _, err := r.Targets.Sync(ctx, adapter.GroupKind()); err != nil && !errors.Is(err, view.ErrNotInstalled) {
			return err
		}
		r.Targets.WhenRead(adapter.GroupKind(), func() {
			r.enqueueKind(ctx, adapter.GroupKind()) // for targets that were reconciled while the objects of the kind were being read
			r.Summary.Evict(ReadKey(adapter))
		})
	}
	close(r.Ready)
	return r.watchAllGates(ctx)
}

// AwaitStart waits until the informers of the installed kinds have been started.
func (r *Reconciler) AwaitStart(ctx context.Context) error {
	select {
	case <-r.Ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadKey returns a key in the summary that represents the read of all objects of a kind. Until it has finished, the sums of all
// Gates are incomplete.
func ReadKey(adapter target.Adapter) target.Key { return target.Key{GroupKind: adapter.GroupKind()} }

// EnqueueAll enqueues all targets.
func (r *Reconciler) EnqueueAll(ctx context.Context) {
	for _, adapter := range target.All() {
		r.enqueueKind(ctx, adapter.GroupKind())
	}
}

// enqueueKind enqueues all targets of a kind.
func (r *Reconciler) enqueueKind(ctx context.Context, kind schema.GroupKind) {
	all, err := r.Targets.All(ctx, kind)
	view.LogReadError(err)
	for _, t := range all {
		r.Queues.Targets(queue.Resync, target.KeyOf(t))
	}
}

// watchAllGates enqueues the targets and GateLocks of a Gate after it was deleted from the cache of all shards. Until that cache has
// caught up with the cache of this shard, the Gate appears to belong to another shard.
func (r *Reconciler) watchAllGates(ctx context.Context) error {
	if r.AllGates == nil {
		return nil
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	informer, err := r.AllGates.GetInformer(ctx, obj, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		key, err := toolscache.DeletionHandlingObjectToName(obj)
		if err != nil {
			return
		}
		selector := view.Selector{Targets: r.Targets}
		named, err := selector.Named(ctx, key.String())
		view.LogReadError(err)
		r.Queues.Targets(queue.Release, named...)
		namespaces, err := r.Locks.Naming(ctx, key.String())
		view.LogReadError(err)
		r.Queues.Locks(namespaces...)
	}})
	return err
}

// Reconcile starts or stops the informer of a kind after a change of its CRD, and enqueues the Gates that refer to the kind.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.AwaitStart(ctx); err != nil {
		return ctrl.Result{}, err
	}
	changed, of, err := r.sync(ctx, req.Name)
	if errors.Is(err, view.ErrNotInstalled) {
		// The API server serves a new CRD after a short delay.
		return ctrl.Result{RequeueAfter: r.Unserved.When(req.Name)}, nil
	}
	r.Unserved.Forget(req.Name)
	if err != nil || !changed {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).Info("informer of a kind changed", "definition", req.Name)
	gates, err := view.ListGates(ctx, r.Gates)
	for _, g := range gates {
		if of(g) {
			r.Queues.Gate(client.ObjectKeyFromObject(g))
		}
		if req.Name == view.GateLockDefinition {
			r.Queues.Locks(view.NamespacesFor(g)...)
		}
	}
	return ctrl.Result{}, err
}

// sync starts or stops the informer of the kind defined by a CRD. It returns whether anything has changed, and a filter for the affected
// Gates.
func (r *Reconciler) sync(ctx context.Context, definition string) (changed bool, of func(*v1alpha1.Gate) bool, err error) {
	if definition == view.GateLockDefinition {
		changed, err = r.Locks.Sync(ctx)
		return changed, func(*v1alpha1.Gate) bool { return true }, err
	}
	kind, ok, err := r.Targets.Definitions.KindFor(ctx, definition)
	if !ok || err != nil {
		return false, nil, err
	}
	if changed, err = r.Targets.Sync(ctx, kind); err == nil && changed {
		if _, watched := r.Targets.Kind(kind); !watched {
			r.Summary.ForgetKind(kind)
		}
		r.enqueueKind(ctx, kind) // because how they are held may depend on the CRD
		r.Targets.WhenRead(kind, func() { r.enqueueKind(context.WithoutCancel(ctx), kind) })
	}
	return changed, func(gate *v1alpha1.Gate) bool {
		of := func(apiVersion, name string) bool {
			adapter, err := target.For(apiVersion, name)
			return err == nil && adapter.GroupKind() == kind
		}
		return slices.ContainsFunc(gate.Spec.Targets, func(ref v1alpha1.TargetReference) bool { return of(ref.APIVersion, ref.Kind) }) ||
			slices.ContainsFunc(gate.Spec.DependsOn, func(ref v1alpha1.DependencyReference) bool { return of(ref.APIVersion, ref.Kind) })
	}, err
}
