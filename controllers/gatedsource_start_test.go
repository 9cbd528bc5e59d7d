package controllers_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// slowDefinition delays the read of the CRD of GitRepositories, and records whether a GatedSource is written before that.
type slowDefinition struct {
	next         http.RoundTripper
	known, early *atomic.Bool
}

func (s slowDefinition) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/gitrepositories.source.toolkit.fluxcd.io"):
		time.Sleep(time.Second)
		s.known.Store(true)
	case r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/gatedsources/") && !s.known.Load():
		s.early.Store(true)
	}
	return s.next.RoundTrip(r)
}

func TestGatedSourcesWaitForWatchesOfAllKinds(t *testing.T) {
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.looks()
	f.isAt("a", "Approved True")
	var known, early atomic.Bool
	config := rest.CopyConfig(cluster.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowDefinition{next, &known, &early} })
	startManager(t, &harness.ControlPlane{Config: config}, func(r *controllers.Gating) {
		r.Namespaces = map[string]ctrlcache.Config{f.Namespace: {}}
	})
	f.push("b")
	f.Must(harness.Eventually(f.Context(), harness.Patience, "b is pinned", func() error {
		if at, _, _ := unstructured.NestedString(f.source("apps-gated").Object, "spec", "ref", "commit"); at != strings.Repeat("b", 40) {
			return fmt.Errorf("it is at %s", at)
		}
		return nil
	}))
	if !known.Load() || early.Load() {
		t.Errorf("the definition was read: %t, and a GatedSource was written before: %t", known.Load(), early.Load())
	}
}

// staleSource is a cache that has an older version of a source.
type staleSource struct {
	view.TargetReader
	was *target.Object
}

// Get implements TargetReader.
func (c staleSource) Get(ctx context.Context, key target.Key) (*target.Object, error) {
	if key == target.KeyOf(c.was) {
		return c.was, nil
	}
	return c.TargetReader.Get(ctx, key)
}

// With only the cache, the approval of the previous spec would count.
func TestPromotionIsDecidedByLiveReads(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	f.looks()
	was := &target.Object{Unstructured: *f.source("apps")}
	f.Must(f.Merge(f.source("apps"), `{"spec":{"url":"https://git.example.com/moved"}}`))
	f.push("a")
	f.approves("alice", commit("a"))
	f.Targets = staleSource{f.Targets, was}
	f.Writes.After = func(string) error {
		if f.Read(f.g); f.g.Status.Promoting != nil {
			t.Errorf("it is promoting %+v", f.g.Status.Promoting)
		}
		return nil
	}
	f.looks()
	f.isAt("", "Approved False WaitingApproval")
}
