package machine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/crds"
)

// The names of the CRDs of the two kinds. The CRD of MachineCertificateRefreshes comes with config/machines.
const (
	refreshDefinition = "machinecertificaterefreshes." + api.Group
	machineDefinition = "machines.cluster.x-k8s.io"
)

// SetupWithManager registers the controller with a manager. It does nothing until MachineCertificateRefreshes are installed.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, namespaces map[string]ctrlcache.Config, limiter workqueue.TypedRateLimiter[reconcile.Request]) error {
	cache, err := ctrlcache.New(mgr.GetConfig(), ctrlcache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultNamespaces: namespaces})
	if err != nil {
		return err
	}
	if err := mgr.Add(cache); err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: "machine"})
	r.kinds.cache, r.kinds.reader = cache, mgr.GetAPIReader()
	r.kinds.enqueue = func(namespace string) {
		if _, ok := namespaces[namespace]; ok || len(namespaces) == 0 {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace}})
		}
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("machine").
		Watches(&v1alpha1.Gate{}, handler.EnqueueRequestsFromMapFunc(r.kinds.requestsFor), builder.WithPredicates(predicate.Funcs{UpdateFunc: isGateChanged})).
		WithOptions(controller.Options{NewQueue: func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return queue
		}}).
		Complete(r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("machine-kind").
		For(&apiextensionsv1.CustomResourceDefinition{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return slices.Contains([]string{refreshDefinition, machineDefinition}, obj.GetName())
		}))).
		Complete(&r.kinds)
}

// isGateChanged returns whether an update of a Gate can affect refreshes.
func isGateChanged(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.Gate)
	after, ok2 := e.ObjectNew.(*v1alpha1.Gate)
	if !ok1 || !ok2 {
		return true
	}
	a, b := before.Status, after.Status
	return before.Generation != after.Generation || before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		a.ObservedGeneration != b.ObservedGeneration || !equality.Semantic.DeepEqual(a.LastTransition, b.LastTransition) ||
		!equality.Semantic.DeepEqual(a.NextTransition, b.NextTransition) ||
		!equality.Semantic.DeepEqual(meta.FindStatusCondition(a.Conditions, v1alpha1.OpenedCondition), meta.FindStatusCondition(b.Conditions, v1alpha1.OpenedCondition))
}

// kinds starts and stops informers when the CRDs of the two kinds are created and deleted. The informers only enqueue namespaces.
type kinds struct {
	cache   ctrlcache.Cache
	reader  client.Reader
	enqueue func(namespace string)

	// syncing is held while the informers change, and mu while the versions are read or written.
	syncing sync.Mutex
	mu      sync.RWMutex
	// refreshes and machines are the served versions of the kinds, empty if a kind is not served.
	refreshes, machines string
	// informer is the informer of MachineCertificateRefreshes.
	informer ctrlcache.Informer
}

// served returns whether MachineCertificateRefreshes are installed, and the served version of Machines, empty if they are not served.
func (k *kinds) served() (installed bool, machines string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.refreshes != "", k.machines
}

// Reconcile implements reconcile.Reconciler for CRDs.
func (k *kinds) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	changed, err := k.sync(ctx)
	if meta.IsNoMatchError(err) {
		return ctrl.Result{RequeueAfter: retryDelay}, nil // the API server serves a new kind after a short delay
	}
	if installed, _ := k.served(); err != nil || !changed || !installed {
		return ctrl.Result{}, err
	}
	list := &v1alpha1.MachineCertificateRefreshList{}
	if err := k.reader.List(ctx, list); err != nil {
		return ctrl.Result{}, err
	}
	for i := range list.Items {
		k.enqueue(list.Items[i].Namespace)
	}
	return ctrl.Result{}, nil
}

// sync updates the informers to the installed versions of the two kinds. It returns whether anything has changed.
func (k *kinds) sync(ctx context.Context) (changed bool, err error) {
	k.syncing.Lock()
	defer k.syncing.Unlock()
	refreshes, err := k.servedVersion(ctx, refreshDefinition, k.refreshes)
	if err != nil {
		return false, err
	}
	machines := ""
	if refreshes != "" { // without config/machines there is no permission to read them
		if machines, err = k.servedVersion(ctx, machineDefinition, k.machines); err != nil {
			return false, err
		}
	}
	changed = refreshes != k.refreshes || machines != k.machines
	if err = k.follow(ctx, &k.refreshes, refreshes, &v1alpha1.MachineCertificateRefresh{}, &v1alpha1.MachineCertificateRefresh{}); err == nil {
		err = k.follow(ctx, &k.machines, machines, newMachine(k.machines), newMachine(machines))
	}
	return changed, err
}

// servedVersion returns the version of a kind to watch. It is empty if the kind is not served or its CRD is being deleted.
func (k *kinds) servedVersion(ctx context.Context, definition, before string) (string, error) {
	found := &apiextensionsv1.CustomResourceDefinition{}
	if err := k.reader.Get(ctx, client.ObjectKey{Name: definition}, found); err != nil || !found.DeletionTimestamp.IsZero() {
		return "", client.IgnoreNotFound(err)
	}
	return crds.ServedVersion(found, before), nil
}

// follow replaces the informer of a kind. before and after are objects of the kind in the old and the new version.
func (k *kinds) follow(ctx context.Context, current *string, version string, before, after client.Object) error {
	if *current == version {
		return nil
	}
	if *current != "" {
		k.set(current, "", nil)
		if err := k.cache.RemoveInformer(ctx, before); err != nil {
			return err
		}
	}
	if version == "" {
		return nil
	}
	informer, err := k.cache.GetInformer(ctx, after, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s: %w", version, err)
	}
	k.set(current, version, informer) // before the first event
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: k.changed, DeleteFunc: k.changed,
		UpdateFunc: func(before, after any) {
			b, ok1 := before.(client.Object)
			a, ok2 := after.(client.Object)
			if !ok1 || !ok2 || b.GetUID() != a.GetUID() || b.GetGeneration() != a.GetGeneration() || b.GetDeletionTimestamp().IsZero() != a.GetDeletionTimestamp().IsZero() ||
				!equality.Semantic.DeepEqual(b.GetLabels(), a.GetLabels()) || !equality.Semantic.DeepEqual(b.GetAnnotations(), a.GetAnnotations()) {
				k.changed(after)
			}
		},
	})
	return err
}

func (k *kinds) set(current *string, version string, informer ctrlcache.Informer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if *current = version; current == &k.refreshes {
		k.informer = informer
	}
}

// changed enqueues the namespace of an object.
func (k *kinds) changed(obj any) {
	if key, err := toolscache.DeletionHandlingObjectToName(obj); err == nil {
		k.enqueue(key.Namespace)
	}
}

// requestsFor returns a request for the namespace of a Gate if it has a MachineCertificateRefresh.
func (k *kinds) requestsFor(ctx context.Context, gate client.Object) []reconcile.Request {
	k.mu.RLock()
	known := k.refreshes != "" && k.informer.HasSynced()
	k.mu.RUnlock()
	if !known {
		return nil // the events of the MachineCertificateRefresh enqueue this namespace
	}
	list := &v1alpha1.MachineCertificateRefreshList{}
	if err := k.cache.List(ctx, list, client.InNamespace(gate.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil || len(list.Items) == 0 {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: gate.GetNamespace()}}}
}
