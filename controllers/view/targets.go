// Package view reads Gates, targets, GateLocks and dependencies from caches and indexes. It writes nothing.
package view

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// TargetReader reads targets, trimmed by target.Trim. Its results must not be changed.
type TargetReader interface {
	// Select returns the objects of a kind that a reference matches in a namespace, or in all namespaces if namespace is empty. It may
	// return ErrNotInstalled, an UnsupportedError or ErrNotRead.
	Select(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) ([]*target.Object, error)

	// Any returns whether Select would return an object.
	Any(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) (bool, error)

	// Get returns an object from the cache, nil if it does not exist. It may return ErrNotRead.
	Get(ctx context.Context, key target.Key) (*target.Object, error)

	// Readable returns ErrNotInstalled, an UnsupportedError or errNotReadable for a kind whose objects cannot be read.
	Readable(ctx context.Context, adapter target.Adapter) error

	// Read returns a whole object from the API server, nil if it does not exist. It may return ErrNotInstalled or an UnsupportedError.
	Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error)

	// HeldBy returns the objects of all kinds that a Gate, given as namespace/name, holds according to their annotation.
	HeldBy(ctx context.Context, gate string) ([]*target.Object, error)

	// Naming returns the objects of all kinds that refer to a Gate, given as namespace/name, by annotation.
	Naming(ctx context.Context, gate string) ([]*target.Object, error)

	// Definition returns facts about the CRD of a kind, zero if they are not known yet.
	Definition(kind schema.GroupKind) target.Definition
}

// heldByIndex and namingIndex are the indexes of targets by the Gates that hold them, and by the Gates that they refer to.
const heldByIndex, namingIndex = "heldBy", "naming"

// TargetCache is a TargetReader with an informer for each installed kind.
type TargetCache struct {
	Cache       ctrlcache.Cache
	Definitions *Definitions
	Handler     toolscache.ResourceEventHandler

	kindTable
}

// NewTargetCache returns a TargetCache without kinds, which are added by Sync. cache must contain only targets, because a kind that
// cannot be read would block the start of the manager's cache. mapper must be the mapper of cache. reader reads from the API server.
// handler handles the events of all targets.
func NewTargetCache(cache ctrlcache.Cache, mapper meta.RESTMapper, reader client.Reader, handler toolscache.ResourceEventHandler) *TargetCache {
	return &TargetCache{
		Cache: cache, Definitions: &Definitions{Mapper: mapper, reader: reader}, Handler: handler, kindTable: newKindTable(),
	}
}

// TrimTargets is the transform for the cache. It trims targets. For Gates, it keeps only the metadata that identifies them.
func TrimTargets(obj any) (any, error) {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		target.Trim(obj, verdict.Us)
	case *metav1.PartialObjectMetadata:
		obj.ManagedFields, obj.Annotations, obj.Labels = nil, nil, nil
	}
	return obj, nil
}

// Sync starts or replaces the informer of a kind if its CRD is served. It removes the informer if there is no CRD or the kind cannot be
// held. It returns whether anything has changed, and ErrNotInstalled if the CRD exists but is not served yet.
func (c *TargetCache) Sync(ctx context.Context, kind schema.GroupKind) (bool, error) {
	alone := c.syncLock(kind)
	alone.Lock()
	defer alone.Unlock()
	known, watched := c.Kind(kind)
	f, err := c.Definitions.find(ctx, kind, known.Version)
	if err != nil {
		return false, err
	}
	changed := c.refuse(kind, f.Fault)
	gvk := kind.WithVersion(f.version)
	switch {
	case !f.installed || f.Fault != "":
		if !watched {
			return changed, nil
		}
		c.put(kind, nil)
		return true, c.Cache.RemoveInformer(ctx, NewTarget(known.GroupVersionKind))
	case gvk.Version == "":
		return false, fmt.Errorf("kind %s %w", kind, ErrNotInstalled)
	case watched && known.GroupVersionKind == gvk:
		before := known.definition
		known.definition = f.definition
		c.put(kind, &known)
		return !reflect.DeepEqual(before, known.definition), nil
	}
	// The old informer is kept until the new one is watching, so that the kind never appears to be missing.
	if err := c.watch(ctx, gvk, f.definition); err != nil || !watched {
		return err == nil, err
	}
	return true, c.Cache.RemoveInformer(ctx, NewTarget(known.GroupVersionKind))
}

// All returns the objects of a kind, nil if they have not been read yet.
func (c *TargetCache) All(ctx context.Context, kind schema.GroupKind) ([]*target.Object, error) {
	watched, ok := c.Kind(kind)
	if !ok {
		return nil, nil
	}
	if !watched.isSynced() {
		return nil, nil
	}
	return c.list(ctx, watched.GroupVersionKind)
}

// Definition implements TargetReader.
func (c *TargetCache) Definition(kind schema.GroupKind) target.Definition {
	known, _ := c.Kind(kind)
	return known.definition
}

func (c *TargetCache) watch(ctx context.Context, gvk schema.GroupVersionKind, definition target.Definition) error {
	obj := NewTarget(gvk)
	// The cache would query the mapper, too, but would block all reads while doing so.
	_, err := c.Definitions.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("kind %s %w", gvk.GroupKind(), ErrNotInstalled)
	}
	if err != nil {
		return err
	}
	informer, err := c.Cache.GetInformer(ctx, obj, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	for name, gates := range map[string]func(*unstructured.Unstructured) []string{heldByIndex: holders, namingIndex: verdict.NamedBy} {
		if err := c.Cache.IndexField(ctx, obj, name, func(obj client.Object) []string {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return nil
			}
			return gates(u)
		}); err != nil {
			return err
		}
	}
	// The first event may arrive immediately, and its handler must find the kind.
	c.Mu.Lock()
	defer c.Mu.Unlock()
	registration, err := informer.AddEventHandler(c.Handler)
	if err != nil {
		return err
	}
	kind := newWatchedKind(gvk, definition, informer.HasSyncedChecker().Done())
	kind.delivered = registration.HasSyncedChecker().Done()
	c.Kinds[gvk.GroupKind()] = kind
	return nil
}

// Readable implements TargetReader. A kind that is being read counts as readable until that takes too long.
func (c *TargetCache) Readable(_ context.Context, adapter target.Adapter) error {
	kind, ok := c.Kind(adapter.GroupKind())
	if !ok {
		return c.missing(adapter.GroupKind())
	}
	select {
	case <-kind.grace:
		if !kind.isSynced() {
			return fmt.Errorf("kind %s %w", adapter.GroupKind(), errNotReadable)
		}
	default:
	}
	return nil
}

// Select implements TargetReader.
func (c *TargetCache) Select(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) ([]*target.Object, error) {
	kind, ok := c.Kind(adapter.GroupKind())
	if !ok {
		return nil, c.missing(adapter.GroupKind())
	}
	if !kind.isSynced() {
		return nil, ErrNotRead
	}
	if ref.Name == v1alpha1.AnyName || namespace == metav1.NamespaceAll {
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector())
		if err != nil {
			return nil, nil //nolint:nilerr // the decision on the Gate reports the invalid spec
		}
		found, err := c.list(ctx, kind.GroupVersionKind, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
		return slices.DeleteFunc(found, func(t *target.Object) bool { return ref.Name != v1alpha1.AnyName && ref.Name != t.GetName() }), err
	}
	obj, err := c.Get(ctx, target.Key{GroupKind: adapter.GroupKind(), NamespacedName: types.NamespacedName{Namespace: namespace, Name: ref.Name}})
	if obj == nil || err != nil {
		return nil, err
	}
	return []*target.Object{obj}, nil
}

// Any implements TargetReader. It stops at the first match.
func (c *TargetCache) Any(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) (bool, error) {
	kind, ok := c.Kind(adapter.GroupKind())
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector())
	if ref.Name != v1alpha1.AnyName || !ok || !kind.isSynced() || err != nil {
		found, err := c.Select(ctx, adapter, namespace, ref)
		return len(found) > 0, err
	}
	found, err := c.list(ctx, kind.GroupVersionKind, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(1))
	return len(found) > 0, err
}

// Get implements TargetReader.
func (c *TargetCache) Get(ctx context.Context, key target.Key) (*target.Object, error) {
	kind, ok := c.Kind(key.GroupKind)
	switch {
	case !ok:
		return nil, nil //nolint:nilnil // nil means that the object does not exist
	case !kind.isSynced():
		return nil, ErrNotRead
	}
	obj := NewTarget(kind.GroupVersionKind)
	if err := c.Cache.Get(ctx, key.NamespacedName, obj, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &target.Object{Unstructured: *obj}, nil
}

// Read implements TargetReader.
func (c *TargetCache) Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	kind, ok := c.Kind(adapter.GroupKind())
	if !ok {
		return nil, c.missing(adapter.GroupKind())
	}
	return read(ctx, c.Definitions.reader, kind.GroupVersionKind, key)
}

// read returns an object, nil if it does not exist.
func read(ctx context.Context, reader client.Reader, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	obj := NewTarget(gvk)
	if err := reader.Get(ctx, key, obj); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return obj, nil
}

// HeldBy implements TargetReader.
func (c *TargetCache) HeldBy(ctx context.Context, gate string) ([]*target.Object, error) {
	return c.indexed(ctx, heldByIndex, gate)
}

// Naming implements TargetReader.
func (c *TargetCache) Naming(ctx context.Context, gate string) ([]*target.Object, error) {
	return c.indexed(ctx, namingIndex, gate)
}

// indexed returns the objects listed in an index for a Gate. It skips kinds that have not been read yet. Once they have been read, the
// events of their objects enqueue the Gates that hold them or that they refer to, including deleted Gates.
func (c *TargetCache) indexed(ctx context.Context, index, gate string) ([]*target.Object, error) {
	c.Mu.RLock()
	kinds := slices.Collect(maps.Values(c.Kinds))
	c.Mu.RUnlock()
	var all []*target.Object
	for _, kind := range kinds {
		if !kind.isSynced() {
			continue
		}
		found, err := c.list(ctx, kind.GroupVersionKind, client.MatchingFields{index: gate})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (c *TargetCache) list(ctx context.Context, gvk schema.GroupVersionKind, opts ...client.ListOption) ([]*target.Object, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.Cache.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	targets := make([]*target.Object, len(list.Items))
	for i := range list.Items {
		targets[i] = &target.Object{Unstructured: list.Items[i]}
	}
	return targets, nil
}

// NewTarget returns an empty object of a kind.
func NewTarget(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}
