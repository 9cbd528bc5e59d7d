package controllers

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
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// How long to wait for a new kind to be served: a definition that conflicts with another
// one never is.
const (
	definitionRetry    = 500 * time.Millisecond
	definitionPatience = 15 * time.Second
)

// kindReconciler watches the kinds of targets and the GateLocks as their definitions come and go.
type kindReconciler struct {
	gates   client.Reader
	targets *TargetCache
	locks   *LockCache
	tally   *summary.Tally
	wake    Waker
	// allGates has the metadata of the Gates of all shards, nil unless there are shards.
	allGates ctrlcache.Cache

	// ready is closed once all kinds are watched that the cluster has.
	ready chan struct{}
	// unserved says when to look again at a definition that is not served.
	unserved workqueue.TypedRateLimiter[string]
}

// start begins to watch the kinds that the cluster has, and the GateLocks.
func (r *kindReconciler) start(ctx context.Context) error {
	if _, err := r.locks.Sync(ctx); err != nil && !errors.Is(err, ErrNotInstalled) {
		return err
	}
	for _, adapter := range target.All() {
		if _, err := r.targets.Sync(ctx, adapter.GroupKind()); err != nil && !errors.Is(err, ErrNotInstalled) {
			return err
		}
		r.targets.whenRead(adapter.GroupKind(), func() {
			r.wakeKind(ctx, adapter.GroupKind()) // what was looked at while it was read
			r.tally.Evict(readOf(adapter))
		})
	}
	close(r.ready)
	return r.watchAllGates(ctx)
}

// awaitStart waits until the kinds that the cluster has are watched.
func (r *kindReconciler) awaitStart(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readOf returns what is expected of a kind at the start: until its objects are read, the sums of no Gate are complete.
func readOf(adapter target.Adapter) target.Key { return target.Key{GroupKind: adapter.GroupKind()} }

// wakeAll enqueues all targets.
func (r *kindReconciler) wakeAll(ctx context.Context) {
	for _, adapter := range target.All() {
		r.wakeKind(ctx, adapter.GroupKind())
	}
}

// wakeKind enqueues all targets of a kind.
func (r *kindReconciler) wakeKind(ctx context.Context, kind schema.GroupKind) {
	all, err := r.targets.All(ctx, kind)
	failed(err)
	for _, t := range all {
		r.wake.Targets(queue.Resync, target.KeyOf(t))
	}
}

// watchAllGates looks again at what a Gate held that is gone from the cache of all
// shards. That one may learn of it after the cache of this shard, and says until then
// that another shard has the Gate.
func (r *kindReconciler) watchAllGates(ctx context.Context) error {
	if r.allGates == nil {
		return nil
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	informer, err := r.allGates.GetInformer(ctx, obj, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		key, err := toolscache.DeletionHandlingObjectToName(obj)
		if err != nil {
			return
		}
		selector := Selector{Targets: r.targets}
		named, err := selector.Named(ctx, key.String())
		failed(err)
		r.wake.Targets(queue.Release, named...)
		namespaces, err := r.locks.Naming(ctx, key.String())
		failed(err)
		r.wake.Locks(namespaces...)
	}})
	return err
}

// Reconcile starts and stops the watch of a kind as its definition comes and
// goes, and lets the Gates know that name the kind.
func (r *kindReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.awaitStart(ctx); err != nil {
		return ctrl.Result{}, err
	}
	changed, of, err := r.sync(ctx, req.Name)
	if errors.Is(err, ErrNotInstalled) {
		// The API server does not serve a new definition at once.
		return ctrl.Result{RequeueAfter: r.unserved.When(req.Name)}, nil
	}
	r.unserved.Forget(req.Name)
	if err != nil || !changed {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).Info("Watch of a kind changed", "definition", req.Name)
	gates, err := listGates(ctx, r.gates)
	for _, g := range gates {
		if of(g) {
			r.wake.Gate(client.ObjectKeyFromObject(g))
		}
		if req.Name == gateLocks {
			r.wake.Locks(namespacesOf(g)...)
		}
	}
	return ctrl.Result{}, err
}

// sync looks at a definition and returns whether something changed, and the
// Gates that it matters to.
func (r *kindReconciler) sync(ctx context.Context, definition string) (changed bool, of func(*v1alpha1.Gate) bool, err error) {
	if definition == gateLocks {
		changed, err = r.locks.Sync(ctx)
		return changed, func(*v1alpha1.Gate) bool { return true }, err
	}
	kind, ok, err := r.targets.definitions.kindOf(ctx, definition)
	if !ok || err != nil {
		return false, nil, err
	}
	if changed, err = r.targets.Sync(ctx, kind); err == nil && changed {
		if _, watched := r.targets.kind(kind); !watched {
			r.tally.ForgetKind(kind)
		}
		r.wakeKind(ctx, kind) // how they are held may depend on the definition
		r.targets.whenRead(kind, func() { r.wakeKind(context.WithoutCancel(ctx), kind) })
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
