package enqueue

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// ForNamespaces handles the events of namespaces.
func (e *Handlers) ForNamespaces(ctx context.Context) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if namespace, ok := obj.(*metav1.PartialObjectMetadata); ok && !isInInitialList { // at the start, all targets are enqueued anyway
				e.Namespace(ctx, nil, namespace)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok1 := before.(*metav1.PartialObjectMetadata)
			a, ok2 := after.(*metav1.PartialObjectMetadata)
			if ok1 && ok2 && !maps.Equal(b.Labels, a.Labels) {
				e.Namespace(ctx, b, a)
			}
		},
	}
}

// Namespace enqueues the targets that Gates start or stop governing because a namespace is new or has new labels, and the GateLock of a new
// namespace.
func (e *Handlers) Namespace(ctx context.Context, before, after *metav1.PartialObjectMetadata) {
	if before == nil && len(e.indexed(ctx, view.TargetField, after.Name)) > 0 {
		e.Queues.Locks(after.Name)
	}
	for _, g := range e.indexed(ctx, view.TargetField, v1alpha1.AnyName) {
		for i := range g.Spec.Targets {
			ref := &g.Spec.Targets[i]
			adapter, err := target.For(ref.APIVersion, ref.Kind)
			if err != nil || !ref.SpansNamespaces() || e.Selector.Includes(ref, before) == e.Selector.Includes(ref, after) {
				continue
			}
			found, err := e.Selector.Targets.Select(ctx, adapter, after.Name, ref)
			view.LogReadError(view.IgnoreUnread(err))
			e.Queues.Targets(queue.Change, view.KeysFor(found)...)
		}
		if after.Name == e.Selector.Own { // Gates that select the controller's namespace report this
			e.Queues.Gate(client.ObjectKeyFromObject(g))
		}
	}
}
