package controllers_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// jammedMapper blocks lookups of a kind.
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

func TestSyncRequestsDelayNoReconciliation(t *testing.T) {
	kustomization, bucket := kindNamed(t, "Kustomization"), kindNamed(t, "Bucket")
	for name, asks := range map[string]struct{ definition, mapping bool }{
		"for a definition": {definition: true}, "for a mapping": {mapping: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, mapper := newJam(), cluster.Client.RESTMapper()
			defer at.end()
			config := at.on(cluster.Config, func(r *http.Request) bool {
				return asks.definition && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/"+view.DefinitionFor(bucket.GroupKind()))
			})
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
			whenRead(c, kustomization)
			goesOn(t, "who reads another kind", func() {
				_ = c.Definition(kustomization.GroupKind())
				c.Failed(schema.GroupKind{Kind: "Other"})
				_, err1 := c.Select(t.Context(), kustomization, "nobodys", ptr.To(all()))
				_, err2 := c.HeldBy(t.Context(), "some/gate")
				_, err3 := c.All(t.Context(), bucket.GroupKind())
				_, err4 := c.Sync(t.Context(), kustomization.GroupKind())
				if err := errors.Join(err1, err2, err3, err4); err != nil {
					t.Error(err)
				}
			})
			at.end()
			if err := <-synced; err != nil {
				t.Error(err)
			}
			whenRead(c, bucket)
			if _, err := c.Select(t.Context(), bucket, "nobodys", ptr.To(all())); err != nil {
				t.Error(err)
			}
		})
	}
}

// whenRead waits until the objects of a kind are read.
func whenRead(c *view.TargetCache, adapter target.Adapter) {
	read := make(chan struct{})
	c.WhenRead(adapter.GroupKind(), func() { close(read) })
	<-read
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
func newTargetCache(t *testing.T, config *rest.Config, mapper meta.RESTMapper) *view.TargetCache {
	t.Helper()
	c, run, err := controllertest.NewTargetCache(config, mapper, toolscache.ResourceEventHandlerFuncs{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}
