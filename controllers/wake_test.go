package controllers

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestHoldsComeFirstInTheQueuesOfTargetsAndOfGatedSources(t *testing.T) {
	for _, kind := range []schema.GroupKind{{}, target.GatedSource} {
		q := enqueue.NewQueues(runtimectrl.GetDefaultRateLimiter)
		key := func(name string) target.Key {
			return target.Key{GroupKind: kind, NamespacedName: types.NamespacedName{Name: name}}
		}
		q.Targets(queue.Resync, key("resync"), key("again"))
		q.Targets(queue.Report, key("tell"))
		q.Targets(queue.Release, key("first release"), key("second release"))
		q.Targets(queue.Release, key("release of another gate"))
		q.Targets(queue.Hold, key("hold"))
		q.Prioritize(key("again")) // it waits, and gets urgent
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
		equal(t, got, []string{"hold", "again", "first release", "release of another gate", "second release", "tell", "resync"})
		q.TargetQueue.ShutDown()
		q.GatedSourceQueue.ShutDown()
	}
}

// Its event tells earlier.
func TestATargetIsLookedAtLaterWhileItsKindIsRead(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	w.Targets = notRead{w.Targets}
	w.woken.Targets(queue.Change, target.KeyOf(app))
	w.Must(w.lookAtWoken())
	if after := w.soonest[target.KeyOf(app)]; after != view.CacheDelay {
		t.Errorf("it is looked at again after %s", after)
	}
}

// notRead is a cache that is being filled.
type notRead struct{ view.TargetReader }

// Get implements TargetReader.
func (notRead) Get(context.Context, target.Key) (*target.Object, error) { return nil, view.ErrNotRead }
