package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// ErrNotInstalled is returned for a supported kind that the cluster lacks.
var ErrNotInstalled = errors.New("is not installed")

// TargetReader reads targets, trimmed as target.Trim does it. What it returns
// must not be changed.
type TargetReader interface {
	// Select returns the objects of a kind in a namespace that a reference
	// names, or ErrNotInstalled.
	Select(ctx context.Context, adapter target.Adapter, namespace string, ref v1alpha1.TargetReference) ([]*target.Object, error)

	// HeldBy returns the objects of all kinds that name a Gate, given as
	// namespace/name, in their held-by annotation.
	HeldBy(ctx context.Context, gate string) ([]*target.Object, error)
}

const (
	// heldByIndex is the name of the index by the Gates in the held-by
	// annotation.
	heldByIndex = "heldBy"

	// readTimeout bounds the wait for a cache that does not fill, for lack of
	// permissions say. The rest of the Gate goes on after it.
	readTimeout = 10 * time.Second
)

// TargetCache is a TargetReader on informers of the kinds that the cluster has.
type TargetCache struct {
	cache   ctrlcache.Cache
	mapper  meta.RESTMapper
	handler toolscache.ResourceEventHandler

	mu    sync.RWMutex
	kinds map[schema.GroupKind]schema.GroupVersionKind
}

// NewTargetCache returns a TargetCache without any kind, see Start. The handler
// gets the events of all targets.
func NewTargetCache(cache ctrlcache.Cache, mapper meta.RESTMapper, handler toolscache.ResourceEventHandler) *TargetCache {
	return &TargetCache{cache: cache, mapper: mapper, handler: handler, kinds: map[schema.GroupKind]schema.GroupVersionKind{}}
}

// TrimTargets is the transform for the cache: targets are kept trimmed.
func TrimTargets(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		target.Trim(u, v1alpha1.FieldManager)
	}
	return obj, nil
}

// Start begins to watch a kind. It returns whether it did: not if the kind is
// watched already. The error is ErrNotInstalled if the cluster lacks the kind.
func (c *TargetCache) Start(ctx context.Context, kind schema.GroupKind) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.kinds[kind]; ok {
		return false, nil
	}
	mapping, err := c.mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return false, fmt.Errorf("kind %s %w", kind, ErrNotInstalled)
	}
	if err != nil {
		return false, err
	}
	obj := newTarget(mapping.GroupVersionKind)
	informer, err := c.cache.GetInformer(ctx, obj, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return false, err
	}
	if err := c.cache.IndexField(ctx, obj, heldByIndex, func(obj client.Object) []string {
		return target.ParseHeldBy(obj.GetAnnotations()[v1alpha1.HeldByAnnotation])
	}); err != nil {
		return false, err
	}
	if _, err := informer.AddEventHandler(c.handler); err != nil {
		return false, err
	}
	c.kinds[kind] = mapping.GroupVersionKind
	return true, nil
}

// Stop ends the watch of a kind that the cluster no longer has. It returns
// whether there was one.
func (c *TargetCache) Stop(ctx context.Context, kind schema.GroupKind) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gvk, ok := c.kinds[kind]
	if !ok {
		return false, nil
	}
	delete(c.kinds, kind)
	return true, c.cache.RemoveInformer(ctx, newTarget(gvk))
}

// Select implements TargetReader.
func (c *TargetCache) Select(ctx context.Context, adapter target.Adapter, namespace string, ref v1alpha1.TargetReference) ([]*target.Object, error) {
	c.mu.RLock()
	gvk, ok := c.kinds[adapter.GroupKind()]
	c.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("kind %s %w", adapter.GroupKind(), ErrNotInstalled)
	}
	if ref.Name == v1alpha1.AnyName {
		return c.list(ctx, gvk, client.InNamespace(namespace), client.MatchingLabels(ref.MatchLabels))
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	obj := newTarget(gvk)
	if err := c.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return []*target.Object{{Unstructured: *obj}}, nil
}

// HeldBy implements TargetReader.
func (c *TargetCache) HeldBy(ctx context.Context, gate string) ([]*target.Object, error) {
	c.mu.RLock()
	kinds := slices.Collect(maps.Values(c.kinds))
	c.mu.RUnlock()
	var held []*target.Object
	for _, gvk := range kinds {
		found, err := c.list(ctx, gvk, client.MatchingFields{heldByIndex: gate})
		if err != nil {
			return nil, err
		}
		held = append(held, found...)
	}
	return held, nil
}

func (c *TargetCache) list(ctx context.Context, gvk schema.GroupVersionKind, opts ...client.ListOption) ([]*target.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.cache.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	targets := make([]*target.Object, len(list.Items))
	for i := range list.Items {
		targets[i] = &target.Object{Unstructured: list.Items[i]}
	}
	return targets, nil
}

func newTarget(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}
