package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// shared has the targets of all worlds. The client of the cluster is one of its clients.
var shared *sharedTargets

// sharedTargets is a TargetCache that sees the whole cluster. A write by one of its clients
// ends once the cache has seen it: who reads then, reads what was written.
type sharedTargets struct {
	*TargetCache

	eventMu sync.Mutex
	// seen is the latest version of each object, also of those that are gone.
	seen map[seenKey]uint64
	// event is closed by the next event.
	event chan struct{}
}

type seenKey struct {
	schema.GroupKind
	client.ObjectKey
}

func seenKeyOf(obj client.Object) seenKey {
	return seenKey{obj.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(obj)}
}

// shareTargets starts the TargetCache of all worlds.
func shareTargets(ctx context.Context) (func() error, error) {
	shared = &sharedTargets{seen: map[seenKey]uint64{}, event: make(chan struct{})}
	targets, run, err := makeTargetCache(cluster.Config, cluster.Client.RESTMapper(), shared)
	if err != nil {
		return nil, err
	}
	shared.TargetCache = targets
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop := func() error {
		cancel()
		return <-ended
	}
	for _, adapter := range target.All() {
		if err := shared.follow(ctx, adapter.GroupKind()); err != nil {
			return stop, err
		}
	}
	cluster.Client = shared.client(cluster.Client)
	return stop, nil
}

// follow has the cache follow a definition that is there, or that is gone.
func (s *sharedTargets) follow(ctx context.Context, kind schema.GroupKind) error {
	// The API server does not serve a new definition at once.
	if err := harness.Eventually(ctx, harness.Patience, definitionOf(kind)+" is served", func() error {
		_, err := s.Sync(ctx, kind)
		return err
	}); err != nil {
		return err
	}
	if watched, ok := s.kind(kind); ok {
		return watched.readable(ctx)
	}
	return nil
}

// followPolicies has the cache of all worlds follow the definition that comes and goes in
// tests.
func followPolicies(ctx context.Context, t testing.TB) {
	t.Helper()
	if err := shared.follow(ctx, schema.GroupKind{Group: "image.toolkit.fluxcd.io", Kind: "ImagePolicy"}); err != nil {
		t.Fatal(err)
	}
}

// of returns the cache as a world has it: what is read from the API server is read as that
// world reads it.
func (s *sharedTargets) of(w *world) *TargetCache {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := NewTargetCache(s.cache, s.mapper, apiReader{w}, s)
	c.kinds = maps.Clone(s.kinds)
	return c
}

// apiReader is the APIReader that a world has by then.
type apiReader struct{ w *world }

func (r apiReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.w.APIReader.Get(ctx, key, obj, opts...)
}

func (r apiReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.w.APIReader.List(ctx, list, opts...)
}

// OnAdd implements ResourceEventHandler.
func (s *sharedTargets) OnAdd(obj any, _ bool) { s.sees(obj) }

// OnUpdate implements ResourceEventHandler.
func (s *sharedTargets) OnUpdate(_, obj any) { s.sees(obj) }

// OnDelete implements ResourceEventHandler.
func (s *sharedTargets) OnDelete(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	s.sees(obj)
}

func (s *sharedTargets) sees(obj any) {
	s.eventMu.Lock()
	defer s.eventMu.Unlock()
	if obj, ok := obj.(client.Object); ok {
		version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
		s.seen[seenKeyOf(obj)] = max(s.seen[seenKeyOf(obj)], version)
	}
	close(s.event)
	s.event = make(chan struct{})
}

// written waits until the cache has what was written, as the API server returned it.
func (s *sharedTargets) written(obj any, err error) error {
	written, ok := obj.(client.Object)
	if err != nil || !ok {
		return err
	}
	if written.GetDeletionTimestamp() != nil && len(written.GetFinalizers()) == 0 {
		return s.deleted(written, nil)
	}
	key := seenKeyOf(written)
	if _, watched := s.kind(key.GroupKind); !watched {
		return nil
	}
	version, err := strconv.ParseUint(written.GetResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	return s.await(key, func() (bool, error) {
		s.eventMu.Lock()
		defer s.eventMu.Unlock()
		return s.seen[key] >= version, nil
	})
}

// deleted waits until the cache knows that an object is gone, or will be.
func (s *sharedTargets) deleted(obj client.Object, err error) error {
	key := seenKeyOf(obj)
	watched, ok := s.kind(key.GroupKind)
	if err != nil || !ok {
		return err
	}
	return s.await(key, func() (bool, error) {
		// Its creation is in the cache, because that has been waited for as well.
		cached := newTarget(watched.GroupVersionKind)
		err := s.cache.Get(context.Background(), key.ObjectKey, cached)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return cached.GetDeletionTimestamp() != nil, err
	})
}

// await waits until something is so, which events tell.
func (s *sharedTargets) await(key seenKey, isSo func() (bool, error)) error {
	late := time.NewTimer(harness.Patience)
	defer late.Stop()
	for {
		s.eventMu.Lock()
		event := s.event
		s.eventMu.Unlock()
		if done, err := isSo(); done || err != nil {
			return err
		}
		select {
		case <-event:
		case <-late.C:
			return fmt.Errorf("not in %s: the cache sees a write of %v", harness.Patience, key)
		}
	}
}

// client returns a client whose writes end once the cache has them.
func (s *sharedTargets) client(c client.WithWatch) client.WithWatch {
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
			return errors.New("nobody would wait for it")
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
