package enqueue

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestHoldsPrecedeReleasesInQueues(t *testing.T) {
	for _, kind := range []schema.GroupKind{{}, target.GatedSource} {
		q := NewQueues(runtimectrl.GetDefaultRateLimiter)
		key := func(name string) target.Key {
			return target.Key{GroupKind: kind, NamespacedName: types.NamespacedName{Name: name}}
		}
		q.Targets(queue.Resync, key("resync"), key("again"))
		q.Targets(queue.Report, key("tell"))
		q.Targets(queue.Release, key("first release"), key("second release"))
		q.Targets(queue.Release, key("release of another gate"))
		q.Targets(queue.Hold, key("hold"))
		q.Prioritize(key("again")) // it is in the queue, and becomes urgent
		var got []string
		for q.TargetQueue.Len() > 0 {
			item, _ := q.TargetQueue.Get()
			got = append(got, item.Name)
			q.TargetQueue.Done(item)
		}
		if isTarget := len(got) > 0; isTarget == (kind == target.GatedSource) {
			t.Errorf("%v is in the queue of targets: %t", kind, isTarget)
		}
		for q.GatedSourceQueue.Len() > 0 {
			item, _ := q.GatedSourceQueue.Get()
			got = append(got, item.Name)
			q.GatedSourceQueue.Done(item)
		}
		if want := []string{"hold", "again", "first release", "release of another gate", "second release", "tell", "resync"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		q.TargetQueue.ShutDown()
		q.GatedSourceQueue.ShutDown()
	}
}

// The next transition may be due meanwhile.
func TestUnwritableGateIsRetriedEachMinute(t *testing.T) {
	t.Parallel()
	limiter := within{TypedRateLimiter: runtimectrl.GetDefaultRateLimiter(), most: failureInterval}
	var last time.Duration
	for range 20 {
		last = limiter.When(reconcile.Request{})
	}
	if last != time.Minute {
		t.Errorf("at last after %s", last)
	}
	limiter.Forget(reconcile.Request{})
	if first := limiter.When(reconcile.Request{}); first > time.Second {
		t.Errorf("at first after %s", first)
	}
}

func TestRecreatedObjectIsChange(t *testing.T) {
	before := view.NewTarget(schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"})
	before.SetUID("before")
	after := before.DeepCopy()
	if matters(before, after) {
		t.Error("nothing has changed")
	}
	after.SetUID("after")
	if !matters(before, after) {
		t.Error("another object is not reconciled")
	}
}
