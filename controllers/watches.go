package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/predicates"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Options of the controllers.
type Options struct {
	// RateLimiter returns the limiter of retries.
	RateLimiter func() workqueue.TypedRateLimiter[reconcile.Request]
	// ClockWatch says when the clock was set, nil if nothing needs to know.
	ClockWatch *ClockWatch
}

func (o Options) controller() controller.Options {
	return controller.Options{RateLimiter: o.RateLimiter()}
}

// gates are the options of the controller of Gates.
func (o Options) gates() controller.Options {
	return controller.Options{RateLimiter: within{o.RateLimiter(), failureInterval}}
}

// failureInterval is how long a Gate waits at most whose own status cannot be read or
// written: the next transition may come meanwhile, and nothing tells when that is over.
const failureInterval = time.Minute

// within bounds the delays of a limiter.
type within struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	most time.Duration
}

// When implements workqueue.TypedRateLimiter.
func (w within) When(item reconcile.Request) time.Duration {
	return min(w.TypedRateLimiter.When(item), w.most)
}

// SetupWithManager registers the controller of Gates and that of the kinds of
// targets with a manager.
func (r *GateReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.GateException{}, gateRefField, func(obj client.Object) []string {
		e, ok := obj.(*v1alpha1.GateException)
		if !ok {
			return nil
		}
		return []string{e.Spec.GateRef.Name}
	}); err != nil {
		return err
	}
	for field, keys := range map[string]client.IndexerFunc{watchField: watchedBy, targetField: targetedBy} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Gate{}, field, keys); err != nil {
			return err
		}
	}
	w := &targetWatcher{
		client: r.Client, ready: make(chan struct{}),
		unserved: workqueue.NewTypedItemExponentialFailureRateLimiter[string](definitionRetry, definitionPatience),
	}
	targets, err := ctrlcache.New(mgr.GetConfig(), ctrlcache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: TrimTargets, DefaultNamespaces: r.Namespaces,
		DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
			w.targets.Failed(reflector.TypeDescription())
		},
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(targets); err != nil {
		return err
	}
	r.Locks = &Locks{Client: r.Client, APIReader: mgr.GetAPIReader(), Namespaces: r.Namespaces}
	w.locks = r.Locks
	w.targets = NewTargetCache(targets, mgr.GetRESTMapper(), mgr.GetAPIReader(), w.handler())
	if r.Sharded {
		r.AllGates = targets // it has no selector
		w.allGates = targets
	}
	r.Targets = w.targets
	if err := r.GateMetrics.registry.Register(newHeldCertificates(func(ctx context.Context) ([]*target.Object, error) {
		return w.targets.All(ctx, target.Certificate)
	})); err != nil {
		return err
	}
	r.Backoff = opts.RateLimiter()
	err = ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Gate{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, requestChanged{},
		))).
		Watches(&v1alpha1.Gate{}, r.versions.handler()).
		Watches(&v1alpha1.GateException{}, notifyGates(), builder.WithPredicates(countsDifferently())).
		// The queue is where events of targets go, whose kinds come and go.
		WatchesRawSource(source.Func(w.start)).
		WatchesRawSource(opts.ClockWatch.Source(allOf(r.Client, &v1alpha1.GateList{}))).
		WatchesRawSource(opts.ClockWatch.Source(w.named)).
		WithOptions(opts.gates()).
		Complete(r)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("target-kind").
		For(&apiextensionsv1.CustomResourceDefinition{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			_, ok := kindOfCRD(obj.GetName())
			return ok || obj.GetName() == gateLocks
		}))).
		Complete(reconcile.Func(w.reconcileCRD))
}

// requestChanged lets updates pass that change an annotation which requests
// something of a Gate.
type requestChanged struct {
	predicate.Funcs
}

// Update implements predicate.Predicate.
func (requestChanged) Update(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
	return before[v1alpha1.OpenRequestedAtAnnotation] != after[v1alpha1.OpenRequestedAtAnnotation] ||
		before[v1alpha1.CloseRequestedAtAnnotation] != after[v1alpha1.CloseRequestedAtAnnotation]
}

// targetWatcher turns the events of targets into requests for their Gates.
type targetWatcher struct {
	client  client.Client
	targets *TargetCache
	locks   *Locks
	// allGates has the metadata of the Gates of all shards, nil unless there are shards.
	allGates ctrlcache.Cache

	// ready is closed once queue is set, when the manager starts controllers.
	ready chan struct{}
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// unserved says when to look again at a definition that is not served.
	unserved workqueue.TypedRateLimiter[string]
}

// start begins to watch the kinds that the cluster has, and looks for the lock.
func (w *targetWatcher) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queue = queue
	close(w.ready)
	if _, err := w.locks.Sync(ctx); err != nil && !errors.Is(err, ErrNotInstalled) {
		return err
	}
	for _, adapter := range target.All() {
		if _, err := w.targets.Sync(ctx, adapter.GroupKind()); err != nil && !errors.Is(err, ErrNotInstalled) {
			return err
		}
	}
	return w.watchAllGates(ctx)
}

// watchAllGates looks again at what a Gate held that is gone from the cache of all
// shards. That one may learn of it after the cache of this shard, and says until then
// that another shard has the Gate.
func (w *targetWatcher) watchAllGates(ctx context.Context) error {
	if w.allGates == nil {
		return nil
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	informer, err := w.allGates.GetInformer(ctx, obj, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if key, err := toolscache.DeletionHandlingObjectToName(obj); err == nil {
			w.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}})
		}
	}})
	return err
}

// reconcileCRD starts and stops the watch of a kind as its definition comes and
// goes, and lets the Gates know that name the kind.
func (w *targetWatcher) reconcileCRD(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	select {
	case <-w.ready:
	case <-ctx.Done():
		return ctrl.Result{}, ctx.Err()
	}
	changed, of, err := w.sync(ctx, req.Name)
	if errors.Is(err, ErrNotInstalled) {
		// The API server does not serve a new definition at once.
		return ctrl.Result{RequeueAfter: w.unserved.When(req.Name)}, nil
	}
	w.unserved.Forget(req.Name)
	if err != nil || !changed {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).Info("Watch of a kind changed", "definition", req.Name)
	return ctrl.Result{}, w.enqueue(ctx, of)
}

// sync looks at a definition and returns whether something changed, and the
// Gates that it matters to.
func (w *targetWatcher) sync(ctx context.Context, definition string) (changed bool, of func(*v1alpha1.Gate) bool, err error) {
	if definition == gateLocks {
		changed, err = w.locks.Sync(ctx)
		return changed, func(*v1alpha1.Gate) bool { return true }, err
	}
	kind, ok := kindOfCRD(definition)
	if !ok {
		return false, nil, nil
	}
	changed, err = w.targets.Sync(ctx, kind)
	return changed, func(gate *v1alpha1.Gate) bool {
		of := func(apiVersion, name string) bool {
			adapter, err := target.For(apiVersion, name)
			return err == nil && adapter.GroupKind() == kind
		}
		return slices.ContainsFunc(gate.Spec.Targets, func(ref v1alpha1.TargetReference) bool { return of(ref.APIVersion, ref.Kind) }) ||
			slices.ContainsFunc(gate.Spec.Watch, func(ref v1alpha1.WatchReference) bool { return of(ref.APIVersion, ref.Kind) })
	}, err
}

// How long to wait for a new kind to be served: a definition that conflicts with another
// one never is.
const (
	definitionRetry    = 500 * time.Millisecond
	definitionPatience = 15 * time.Second
)

// definitionOf returns the name of the CustomResourceDefinition of a kind.
func definitionOf(kind schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return plural.GroupResource().String()
}

// kindOfCRD returns the supported kind of a CustomResourceDefinition.
func kindOfCRD(name string) (schema.GroupKind, bool) {
	for _, adapter := range target.All() {
		if kind := adapter.GroupKind(); definitionOf(kind) == name {
			return kind, true
		}
	}
	return schema.GroupKind{}, false
}

// handler returns the handler of the events of all targets.
func (w *targetWatcher) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: w.notify,
		UpdateFunc: func(before, after any) {
			if matters(before, after) {
				// A target that no longer matches is still in the held-by annotation.
				w.notify(before)
				w.notify(after)
			} else if u, ok := after.(*unstructured.Unstructured); ok {
				w.notifyWatching(u)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			w.notify(obj)
		},
	}
}

// notify asks the Gates of a target to look at it.
func (w *targetWatcher) notify(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	for _, request := range namedIn(u) {
		w.queue.Add(request)
	}
	w.notifyWatching(u)
	for _, name := range []string{u.GetName(), v1alpha1.AnyName} {
		w.notifyBy(targetField, keyOf(u, name), func(gate *v1alpha1.Gate) bool { return governs(gate, u, nil) })
	}
}

// named returns requests for the Gates that targets name, of which some may not exist.
func (w *targetWatcher) named(ctx context.Context) (requests []reconcile.Request, err error) {
	for _, adapter := range target.All() {
		targets, err := w.targets.All(ctx, adapter.GroupKind())
		if err != nil {
			return nil, err
		}
		for _, t := range targets {
			requests = append(requests, namedIn(&t.Unstructured)...)
		}
	}
	return requests, nil
}

// namedIn returns requests for the Gates that hold a target or that it names itself.
func namedIn(obj *unstructured.Unstructured) (requests []reconcile.Request) {
	for _, gate := range append(holders(obj), namedBy(obj)...) {
		namespace, name, _ := strings.Cut(gate, "/")
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return requests
}

// notifyBy asks Gates to look at an object that an index has for a key.
func (w *targetWatcher) notifyBy(field, key string, of func(*v1alpha1.Gate) bool) {
	if err := w.enqueue(context.Background(), of, client.MatchingFields{field: key}); err != nil {
		// Only a cache that is shut down cannot be read.
		ctrl.Log.WithName("targets").Error(err, "unable to list gates")
	}
}

func (w *targetWatcher) enqueue(ctx context.Context, of func(*v1alpha1.Gate) bool, opts ...client.ListOption) error {
	gates := &v1alpha1.GateList{}
	if err := w.client.List(ctx, gates, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	for i := range gates.Items {
		if of(&gates.Items[i]) {
			w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&gates.Items[i])})
		}
	}
	return nil
}

// matters returns whether an update of a target can matter to a Gate: most are
// about the status that Flux reports.
func matters(before, after any) bool {
	b, ok1 := before.(*unstructured.Unstructured)
	a, ok2 := after.(*unstructured.Unstructured)
	if !ok1 || !ok2 {
		return true
	}
	adapter := target.Of(a)
	old, latest := &target.Object{Unstructured: *b}, &target.Object{Unstructured: *a}
	return adapter == nil || adapter.Observe(old, us) != adapter.Observe(latest, us) || adapter.Differs(old, latest) ||
		old.GetAnnotations()[v1alpha1.HeldByAnnotation] != latest.GetAnnotations()[v1alpha1.HeldByAnnotation] ||
		old.GetAnnotations()[v1alpha1.ActivateIntoAnnotation] != latest.GetAnnotations()[v1alpha1.ActivateIntoAnnotation] ||
		old.GetAnnotations()[v1alpha1.GatesAnnotation] != latest.GetAnnotations()[v1alpha1.GatesAnnotation] ||
		(old.GetDeletionTimestamp() == nil) != (latest.GetDeletionTimestamp() == nil) ||
		!apiequality.Semantic.DeepEqual(old.GetLabels(), latest.GetLabels()) ||
		!apiequality.Semantic.DeepEqual(conditions.Get(old, v1alpha1.ApprovedCondition), conditions.Get(latest, v1alpha1.ApprovedCondition))
}
