package controllers

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// jam is where requests wait: each one tells that it has arrived, and goes on once
// it is free.
type jam struct {
	arrived, freed chan struct{}
	free           func()
}

func newJam() jam {
	j := jam{arrived: make(chan struct{}, 100), freed: make(chan struct{})}
	j.free = sync.OnceFunc(func() { close(j.freed) })
	return j
}

func (j jam) wait(ctx context.Context) {
	j.arrived <- struct{}{}
	select {
	case <-j.freed:
	case <-ctx.Done():
	}
}

// jammedTransport has the requests for a path wait.
type jammedTransport struct {
	http.RoundTripper
	jam
	path string
}

func (s jammedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, s.path) {
		s.wait(r.Context())
	}
	return s.RoundTripper.RoundTrip(r)
}

// jammedMapper has those wait who look for a kind.
type jammedMapper struct {
	meta.RESTMapper
	jam
	kind schema.GroupKind
}

func (s jammedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind == s.kind {
		s.wait(context.Background())
	}
	return s.RESTMapper.RESTMapping(kind, versions...)
}

func TestNobodyWaitsForTheRequestsThatASyncMakes(t *testing.T) {
	kustomization, bucket := kindNamed(t, "Kustomization"), kindNamed(t, "Bucket")
	for name, asks := range map[string]struct{ definition, mapping bool }{
		"for a definition": {definition: true}, "for a mapping": {mapping: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, mapper, config := newJam(), cluster.Client.RESTMapper(), rest.CopyConfig(cluster.Config)
			defer at.free()
			if asks.definition {
				config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
					return jammedTransport{rt, at, "/customresourcedefinitions/" + definitionOf(bucket.GroupKind())}
				})
			}
			if asks.mapping {
				mapper = jammedMapper{mapper, at, bucket.GroupKind()}
			}
			c := newTargetCache(t, config, mapper)
			if changed, err := c.Sync(t.Context(), kustomization.GroupKind()); err != nil || !changed {
				t.Fatalf("%t, %v", changed, err)
			}
			synced := make(chan error, 1)
			go func() {
				_, err := c.Sync(t.Context(), bucket.GroupKind())
				synced <- err
			}()
			<-at.arrived
			others := make(chan error)
			go func() {
				defer close(others)
				_ = c.Definition(kustomization.GroupKind())
				c.Failed("some other kind")
				_, err := c.Select(t.Context(), kustomization, "nobodys", all())
				others <- err
				_, err = c.HeldBy(t.Context(), "some/gate")
				others <- err
				_, err = c.All(t.Context(), bucket.GroupKind())
				others <- err
				_, err = c.Sync(t.Context(), kustomization.GroupKind())
				others <- err
			}()
			expectDone(t, others)
			at.free()
			if err := <-synced; err != nil {
				t.Error(err)
			}
			if _, err := c.Select(t.Context(), bucket, "nobodys", all()); err != nil {
				t.Error(err)
			}
		})
	}
}

// expectDone waits until a channel is closed, and reports the errors from it. The deadline
// is for who waits for good.
func expectDone(t *testing.T, errs <-chan error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case err, open := <-errs:
			switch {
			case !open:
				return
			case err != nil:
				t.Error(err)
			}
		case <-deadline:
			t.Fatal("somebody waits for what is stuck")
		}
	}
}

func kindNamed(t *testing.T, kind string) target.Adapter {
	t.Helper()
	adapter, err := target.For("", kind)
	if err != nil {
		t.Fatal(err)
	}
	return adapter
}

// newTargetCache returns a TargetCache that runs until the test ends.
func newTargetCache(t *testing.T, config *rest.Config, mapper meta.RESTMapper) *TargetCache {
	t.Helper()
	scheme, err := harness.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	cache, err := ctrlcache.New(config, ctrlcache.Options{Scheme: scheme, Mapper: mapper, DefaultTransform: TrimTargets})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cache.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return NewTargetCache(cache, mapper, reader, toolscache.ResourceEventHandlerFuncs{})
}
