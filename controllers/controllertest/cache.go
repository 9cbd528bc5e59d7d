package controllertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// sharedCache caches the targets, Gates and exceptions of all worlds. Writes of the cluster's client wait for
// it.
var sharedCache *targetCache

// targetCache is a TargetCache of the whole control plane. Its clients return from a write when the cache has received it, so that a
// later read returns the written object.
type targetCache struct {
	*view.TargetCache

	eventMu sync.Mutex
	// seen contains the last event of each object.
	seen map[seenKey]sighted
	// event is closed by the next event.
	event chan struct{}
}

type seenKey struct {
	schema.GroupKind
	client.ObjectKey
}

// sighted is the last version of an object that the cache has received.
type sighted struct {
	version uint64
	// going is true if the object is being deleted, and gone if it does not exist.
	going, gone bool
}

// shareTargets starts the TargetCache of all worlds, and returns a function that stops it.
func shareTargets(ctx context.Context) (func() error, error) {
	sharedCache = &targetCache{seen: map[seenKey]sighted{}, event: make(chan struct{})}
	targets, run, err := NewTargetCache(controlPlane.Config, controlPlane.Client.RESTMapper(), sharedCache)
	if err != nil {
		return nil, err
	}
	sharedCache.TargetCache = targets
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop := func() error {
		cancel()
		return <-ended
	}
	var kinds errgroup.Group
	for _, adapter := range target.All() {
		kinds.Go(func() error { return sharedCache.follow(ctx, adapter.GroupKind()) })
	}
	if err := kinds.Wait(); err != nil {
		return stop, err
	}
	if err := sharedCache.followOurs(ctx); err != nil {
		return stop, err
	}
	controlPlane.Client = sharedCache.client(controlPlane.Client)
	return stop, nil
}

// followOurs adds Gates and exceptions to the cache, with the indexes of the manager. The API server would take a third of a second for
// each list of exceptions by their Gate.
func (s *targetCache) followOurs(ctx context.Context) error {
	if err := controllers.IndexFields(ctx, s.Cache); err != nil {
		return err
	}
	for _, obj := range []client.Object{&v1alpha1.Gate{}, &v1alpha1.GateException{}} {
		informer, err := s.Cache.GetInformer(ctx, obj)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(s); err != nil {
			return err
		}
	}
	return nil
}

// follow makes the cache watch a kind whose definition was created, or stop watching one whose definition was deleted.
func (s *targetCache) follow(ctx context.Context, kind schema.GroupKind) error {
	// The API server serves a new definition only after a delay.
	if err := harness.Eventually(ctx, harness.Patience, view.DefinitionFor(kind)+" is served", func() error {
		_, err := s.Sync(ctx, kind)
		return err
	}); err != nil {
		return err
	}
	read := make(chan struct{})
	s.WhenRead(kind, func() { close(read) })
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// FollowPolicies makes the shared cache follow the definition that tests create and delete.
func FollowPolicies(ctx context.Context, t testing.TB) {
	t.Helper()
	if err := sharedCache.follow(ctx, schema.GroupKind{Group: "image.toolkit.fluxcd.io", Kind: "ImagePolicy"}); err != nil {
		t.Fatal(err)
	}
}

// of returns the shared cache for a world. It reads from the API server through the world's APIReader.
func (s *targetCache) of(w *World) *view.TargetCache {
	s.Mu.RLock()
	defer s.Mu.RUnlock()
	c := view.NewTargetCache(s.Cache, s.Definitions.Mapper, apiReader{w}, s)
	c.Kinds = maps.Clone(s.Kinds)
	return c
}

// apiReader reads with the current APIReader of a world.
type apiReader struct{ w *World }

func (r apiReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.w.APIReader.Get(ctx, key, obj, opts...)
}

func (r apiReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.w.APIReader.List(ctx, list, opts...)
}

// OnAdd implements ResourceEventHandler.
func (s *targetCache) OnAdd(obj any, _ bool) { s.sees(obj, false) }

// OnUpdate implements ResourceEventHandler.
func (s *targetCache) OnUpdate(_, obj any) { s.sees(obj, false) }

// OnDelete implements ResourceEventHandler.
func (s *targetCache) OnDelete(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	s.sees(obj, true)
}

func (s *targetCache) sees(obj any, gone bool) {
	s.eventMu.Lock()
	defer s.eventMu.Unlock()
	if obj, key := s.followed(obj); obj != nil {
		version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
		s.seen[key] = sighted{version, obj.GetDeletionTimestamp() != nil, gone}
	}
	close(s.event)
	s.event = make(chan struct{})
}

// followed returns an object and its key if the cache has its kind. Otherwise, it returns nil.
func (s *targetCache) followed(written any) (client.Object, seenKey) {
	obj, ok := written.(client.Object)
	if !ok {
		return nil, seenKey{}
	}
	gvk, err := controlPlane.Client.GroupVersionKindFor(obj)
	if err != nil {
		return nil, seenKey{}
	}
	key := seenKey{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
	if _, ok := s.Kind(key.GroupKind); !ok && !slices.Contains(ours, key.GroupKind) {
		return nil, seenKey{}
	}
	return obj, key
}

// ours are the kinds of our API group that the cache has.
var ours = []schema.GroupKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind).GroupKind(),
	v1alpha1.GroupVersion.WithKind(v1alpha1.GateExceptionKind).GroupKind(),
}

// written waits until the cache has received the version of an object that a write returned. It returns the error of the write.
func (s *targetCache) written(written any, err error) error {
	obj, key := s.followed(written)
	if err != nil || obj == nil {
		return err
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		return s.await(key, func(has sighted) bool { return has.gone })
	}
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	return s.await(key, func(has sighted) bool { return has.version >= version })
}

// deleted waits until the cache has received that an object is deleted or being deleted. It returns the error of the delete.
func (s *targetCache) deleted(deleted client.Object, err error) error {
	obj, key := s.followed(deleted)
	if err != nil || obj == nil {
		return err
	}
	return s.await(key, func(has sighted) bool { return has.going || has.gone })
}

// await waits until isSo is true for the last version of an object in the cache.
func (s *targetCache) await(key seenKey, isSo func(sighted) bool) error {
	late := time.NewTimer(harness.Patience)
	defer late.Stop()
	for {
		s.eventMu.Lock()
		event, has := s.event, s.seen[key]
		s.eventMu.Unlock()
		if isSo(has) {
			return nil
		}
		select {
		case <-event:
		case <-late.C:
			return fmt.Errorf("not in %s: the cache has received the write of %v", harness.Patience, key)
		}
	}
}

// client returns a client whose writes return when the cache has received them.
func (s *targetCache) client(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return s.written(obj, c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return s.written(obj, c.Update(ctx, obj, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return s.deleted(obj, c.Delete(ctx, obj, opts...))
		},
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			return errors.New("the cache cannot wait for a DeleteAllOf")
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return s.written(obj, c.Patch(ctx, obj, patch, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return s.written(obj, c.Apply(ctx, obj, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.written(obj, c.SubResource(sub).Patch(ctx, obj, patch, opts...))
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return s.written(obj, c.SubResource(sub).Apply(ctx, obj, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return s.written(obj, c.SubResource(sub).Update(ctx, obj, opts...))
		},
	})
}

// NewTargetCache returns a TargetCache and the function that runs it.
func NewTargetCache(config *rest.Config, mapper meta.RESTMapper, handler toolscache.ResourceEventHandler) (c *view.TargetCache, run func(context.Context) error, err error) {
	scheme, err := harness.Scheme()
	if err != nil {
		return nil, nil, err
	}
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, err
	}
	cache, err := ctrlcache.New(config, ctrlcache.Options{Scheme: scheme, Mapper: mapper, DefaultTransform: view.TrimTargets})
	if err != nil {
		return nil, nil, err
	}
	return view.NewTargetCache(cache, mapper, reader, handler), cache.Start, nil
}

// WaitForCache returns a client whose writes return when the shared cache has received them.
func WaitForCache(c client.WithWatch) client.WithWatch { return sharedCache.client(c) }
