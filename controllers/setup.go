// Package controllers wires the controllers.
package controllers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	runtimeCtrl "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/predicates"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/exception"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/controllers/gatedsource"
	lockcontroller "github.com/fluxcd/gating-controller/controllers/lock"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	targetcontroller "github.com/fluxcd/gating-controller/controllers/target"
	"github.com/fluxcd/gating-controller/controllers/targetkind"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/applier"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Gating contains the dependencies of the controllers of Gates, targets and GateLocks.
type Gating struct {
	// Client reads Gates from the cache and writes.
	client.Client
	// EventRecorder emits events on Gates and on targets.
	kuberecorder.EventRecorder
	// Metrics are the metrics of Flux controllers.
	runtimeCtrl.Metrics
	view.Reach

	// APIReader reads from the API server.
	APIReader client.Reader
	// Targets reads targets, and Locks reads GateLocks.
	Targets view.TargetReader
	Locks   view.LockReader
	// Clock is read once for each decision.
	Clock clock.PassiveClock
	// ServerTime returns the time of the API server, and ServerClock measures how far Clock is behind it, see gate.Decider.
	ServerTime  func(context.Context) (time.Time, error)
	ServerClock *gatecontroller.ServerClock
	// Sharded is true if the cache has only the Gates of one shard.
	Sharded bool
	// AllGates reads the metadata of the Gates of all shards from a cache. It is nil unless Sharded is set.
	AllGates client.Reader
	// Shard selects the GatedSources of this process by their labels. Nil selects all.
	Shard labels.Selector
	// StampsSources returns whether the API server stamps approvers of revisions.
	StampsSources func(context.Context) (bool, error)
	// WritesAtOnce bounds the concurrent reconciliations of targets, and separately the concurrent reconciliations of GatedSources. Zero
	// means 16. The rate of writes is bounded by --kube-api-qps and --kube-api-burst.
	WritesAtOnce int
	// Backoff limits the retries of Gates, by UID.
	Backoff workqueue.TypedRateLimiter[reconcile.Request]
	// Stamped returns whether the API server stamps requesters and approvers. If Stamped is nil, it does not.
	Stamped func(context.Context) (bool, error)
	// Calendars is shared with the exception controller. If it is nil, a separate reader is created.
	Calendars *calendars.Reader
	// GateMetrics are the metrics of Gates.
	GateMetrics *events.Metrics
}

// writesAtOnce is the default of WritesAtOnce.
const writesAtOnce = 16

// Reconcilers contains the reconcilers of all controllers, and the handlers that enqueue objects for them.
type Reconcilers struct {
	Gates        *gatecontroller.Reconciler
	Targets      *targetcontroller.Reconciler
	GatedSources *gatedsource.Reconciler
	Locks        *lockcontroller.Reconciler
	Handlers     *enqueue.Handlers
}

// NewReconcilers creates the reconcilers.
func (c *Gating) NewReconcilers(m *State, queues enqueue.Enqueuer) *Reconcilers {
	spanning := view.Scopes{Reach: c.Reach, Readers: []client.Reader{c.Client, c.APIReader}}
	if !c.Spans() {
		spanning.Readers = []client.Reader{c.APIReader}
	}
	selector := &view.Selector{Scopes: spanning, Targets: c.Targets}
	index := &view.GateIndex{Scopes: spanning, Reader: c.Client, APIReader: c.APIReader, AllGates: c.AllGates, Newest: m.Gates.Newest}
	m.dependencies.Reach, m.dependencies.Targets = c.Reach, c.Targets
	m.Calendars.APIReader, m.Calendars.Queues = c.APIReader, queues
	m.targetEvents.EventRecorder, m.targetEvents.Metrics = c.EventRecorder, c.GateMetrics
	l := &Reconcilers{Handlers: &enqueue.Handlers{
		Clock: c.Clock, Gates: c.Client, Selector: selector, Locks: c.Locks, Summary: m.Summary, Rollouts: m.Rollouts, Queues: queues, Versions: m.targets,
	}}
	backoff := enqueue.NewBackoff(c.Backoff)
	l.Gates = &gatecontroller.Reconciler{
		Gates:  &ownwrites.Client{Client: c.Client, Live: c.APIReader, Versions: m.versions, Caches: m.gateCaches(backoff)},
		Client: c.Client, EventRecorder: c.EventRecorder, Metrics: c.Metrics, Clock: c.Clock,
		Decider:   &gatecontroller.Decider{Clock: c.Clock, ServerTime: c.ServerTime, ServerClock: c.ServerClock, Stamped: c.Stamped, Dependencies: m.dependencies, Skew: c.GateMetrics.Skew},
		Calendars: m.Calendars,
		Selector:  selector, Locks: c.Locks, Summary: m.Summary, Slots: m.Slots, Rollouts: m.Rollouts, Handlers: l.Handlers, GateMetrics: c.GateMetrics, Backoff: backoff, Queues: queues,
		State: m.Gates, TargetEvents: m.targetEvents, Passes: m.passes,
		Appliers: m.appliers, Background: m.Background,
	}
	l.Targets = targetcontroller.New(targetcontroller.Reconciler{
		Client: c.Client, EventRecorder: c.EventRecorder, Live: c.APIReader, Versions: m.targets, Clock: c.Clock, Targets: c.Targets, Gates: index, Locks: c.Locks,
		Summary: m.Summary, Slots: m.Slots, Rollouts: m.Rollouts, Queues: queues, Passes: m.passes, TargetEvents: m.targetEvents, Caches: m.targetCaches(),
	})
	l.GatedSources = gatedsource.New(gatedsource.Reconciler{
		Client: c.Client, EventRecorder: c.EventRecorder, Live: c.APIReader, Versions: m.targets, Clock: c.Clock, Targets: c.Targets, Gates: index, Summary: m.Summary, Slots: m.Slots, Queues: queues,
		Stamped: c.StampsSources, Shard: c.Shard, GateMetrics: c.GateMetrics, Rollout: rollout.Recorder{Rollouts: m.Rollouts, Queues: queues}, TargetEvents: m.targetEvents, Caches: m.targetCaches(),
	})
	l.Locks = &lockcontroller.Reconciler{
		Client: c.Client, Reach: c.Reach, APIReader: c.APIReader, Clock: c.Clock, Locks: c.Locks, Gates: index, Targets: c.Targets, Summary: m.Summary,
	}
	return l
}

// SetupWithManager registers the controllers with a manager.
func (c *Gating) SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts enqueue.Options) error {
	if err := IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	queues := enqueue.NewQueues(opts.RateLimiter)
	kinds := &targetkind.Reconciler{
		Gates: c.Client, Queues: queues, Ready: make(chan struct{}),
		Unserved: workqueue.NewTypedItemExponentialFailureRateLimiter[string](targetkind.DefinitionRetry, targetkind.DefinitionPatience),
	}
	targets, err := ctrlcache.New(mgr.GetConfig(), ctrlcache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: view.TrimTargets, DefaultNamespaces: c.Namespaces,
		NewInformer: newInformer(func(kind schema.GroupKind) { kinds.Targets.Failed(kind) }),
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(targets); err != nil {
		return err
	}
	m := NewState()
	m.Calendars = cmp.Or(c.Calendars, m.Calendars)
	if m.Calendars.Watches, err = calendars.ConfigMapWatches(mgr); err != nil {
		return err
	}
	m.Background = gatecontroller.NewBackground()
	for _, runnable := range []manager.Runnable{m.Calendars, m.Background} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	kinds.Locks = &view.LockCache{Cache: targets, APIReader: mgr.GetAPIReader(), Own: c.Own}
	kinds.Targets = view.NewTargetCache(targets, mgr.GetRESTMapper(), mgr.GetAPIReader(), nil)
	if kinds.Targets.Definitions.Document, err = openAPIReader(mgr); err != nil {
		return err
	}
	kinds.Summary = m.Summary
	for _, adapter := range target.All() { // before any controller starts
		m.Summary.Expect(targetkind.ReadKey(adapter))
	}
	if c.Sharded {
		c.AllGates, kinds.AllGates = targets, targets // this cache has no selector
	}
	c.Targets, c.Locks = kinds.Targets, kinds.Locks
	c.Backoff = opts.RateLimiter()
	l := c.NewReconcilers(m, queues)
	kinds.Targets.Handler, kinds.Locks.Handler = l.Handlers.ForTargets(ctx), l.Handlers.ForLocks(ctx)
	m.Summary.Changed = func(g summary.Gate, settled bool) {
		if settled {
			queues.Gate(g.NamespacedName)
		} else {
			queues.GateSoon(g.NamespacedName)
		}
	}
	m.Summary.Completed = func() { view.LogReadError(enqueueGates(ctx, c.Client, queues)) }
	if err := c.GateMetrics.Registry.Register(events.NewHeldCertificates(func(ctx context.Context) ([]*target.Object, error) {
		return kinds.Targets.All(ctx, target.Certificate)
	})); err != nil {
		return err
	}
	return c.register(mgr, opts, l, queues, kinds)
}

// newInformer returns a constructor of informers. The informers call failed for a kind that cannot be listed or watched.
func newInformer(failed func(schema.GroupKind)) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		informer, kind := toolscache.NewSharedIndexInformer(lw, obj, resync, indexers), obj.GetObjectKind().GroupVersionKind().GroupKind()
		if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
			failed(kind)
		}); err != nil {
			panic(err) // setting the handler fails only after the informer has started
		}
		return informer
	}
}

// register registers the controllers of Gates, targets, GateLocks and kinds.
func (c *Gating) register(mgr ctrl.Manager, opts enqueue.Options, l *Reconcilers, queues *enqueue.Queues, kinds *targetkind.Reconciler) error {
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Gate{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, requestChanged{},
		))).
		Watches(&v1alpha1.Gate{}, ownwrites.EnqueueOthers(l.Gates.Gates.Versions)).
		Watches(&v1alpha1.Gate{}, l.Handlers.ForGates()).
		Watches(&v1alpha1.GateException{}, exception.EnqueueGate(), builder.WithPredicates(exception.EffectChanged())).
		WatchesRawSource(opts.ClockWatch.Source(enqueue.RequestsForAll(c.Client, &v1alpha1.GateList{}))).
		WithOptions(controller.Options{NewQueue: useQueue(queues.GateQueue)}).
		Complete(l.Gates)
	if err != nil {
		return err
	}
	targets, err := controller.NewTyped("target", mgr, controller.TypedOptions[target.Key]{
		Reconciler: l.Targets, MaxConcurrentReconciles: cmp.Or(c.WritesAtOnce, writesAtOnce), NewQueue: useQueue(queues.TargetQueue),
		LogConstructor: func(key *target.Key) logr.Logger {
			log := mgr.GetLogger().WithValues("controller", "target")
			if key != nil {
				log = log.WithValues("kind", key.Kind, "namespace", key.Namespace, "name", key.Name)
			}
			return log
		},
	})
	if err != nil {
		return err
	}
	if err := targets.Watch(source.TypedFunc[target.Key](func(ctx context.Context, _ workqueue.TypedRateLimitingInterface[target.Key]) error {
		// Deciding on a target requires all Gates.
		if _, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.Gate{}); err != nil {
			return err
		}
		if err := c.watchNamespaces(ctx, mgr, l); err != nil {
			return err
		}
		opts.ClockWatch.Add(kinds.EnqueueAll)
		return kinds.Start(ctx)
	})); err != nil {
		return err
	}
	gatedSources, err := controller.New("gatedsource", mgr, controller.Options{
		Reconciler: l.GatedSources, MaxConcurrentReconciles: cmp.Or(c.WritesAtOnce, writesAtOnce), NewQueue: useQueue(queues.GatedSourceQueue),
	})
	if err != nil {
		return err
	}
	if err := gatedSources.Watch(source.Func(func(ctx context.Context, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		return kinds.AwaitStart(ctx) // until then, sources would appear to be missing
	})); err != nil {
		return err
	}
	if _, err := controller.New("gatelock", mgr, controller.Options{Reconciler: l.Locks, NewQueue: useQueue(queues.LockQueue)}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("target-kind").
		For(&apiextensionsv1.CustomResourceDefinition{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			_, ok := view.KindForDefinition(obj.GetName())
			return ok || obj.GetName() == view.GateLockDefinition || len(view.AddedKindsFor(obj.GetName())) > 0
		}))).
		Complete(kinds)
}

// watchNamespaces watches namespaces, unless this process is limited to some namespaces, because it may lack the permission then.
func (c *Gating) watchNamespaces(ctx context.Context, mgr ctrl.Manager, l *Reconcilers) error {
	if !c.Spans() {
		return nil
	}
	informer, err := mgr.GetCache().GetInformer(ctx, view.NewNamespace())
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(l.Handlers.ForNamespaces(ctx))
	return err
}

// openAPIReader returns a function that reads the OpenAPI 3 document of an API group and version.
func openAPIReader(mgr ctrl.Manager) (func(context.Context, schema.GroupVersion) ([]byte, error), error) {
	c, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, gv schema.GroupVersion) ([]byte, error) {
		return c.RESTClient().Get().AbsPath("/openapi/v3/apis/" + gv.String()).DoRaw(ctx)
	}, nil
}

// useQueue returns a constructor that returns q instead of a new queue.
func useQueue[T comparable](q workqueue.TypedRateLimitingInterface[T]) func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	return func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] { return q }
}

// IndexFields adds the indexes of exceptions by Gate, and of Gates by dependencies and targets.
func IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &v1alpha1.GateException{}, view.GateRefField, func(obj client.Object) []string {
		e, ok := obj.(*v1alpha1.GateException)
		if !ok {
			return nil
		}
		return []string{e.Spec.GateRef.Name}
	}); err != nil {
		return err
	}
	for field, keys := range map[string]client.IndexerFunc{view.DependencyField: view.DependencyIndexKeys, view.TargetField: view.TargetIndexKeys} {
		if err := indexer.IndexField(ctx, &v1alpha1.Gate{}, field, keys); err != nil {
			return err
		}
	}
	return nil
}

// enqueueGates enqueues all Gates.
func enqueueGates(ctx context.Context, reader client.Reader, queues enqueue.Enqueuer) error {
	gates, err := view.ListGates(ctx, reader)
	for _, g := range gates {
		queues.Gate(client.ObjectKeyFromObject(g))
	}
	return err
}

// requestChanged is a predicate for updates that change a request on a Gate, or the appliers of the Gate. A close request with the same
// time but by another user is a new request.
type requestChanged struct {
	predicate.Funcs
}

// Update implements predicate.Predicate.
func (requestChanged) Update(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
	return slices.ContainsFunc([]string{
		v1alpha1.OpenRequestedAtAnnotation, v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReceivedAnnotation,
		v1alpha1.UnhandledAnnotation, v1alpha1.ProceedRequestedAtAnnotation,
		v1alpha1.ApproveRequestedByAnnotation,
	}, func(name string) bool { return before[name] != after[name] }) ||
		!slices.Equal(applier.Appliers(e.ObjectOld.GetLabels()), applier.Appliers(e.ObjectNew.GetLabels()))
}
