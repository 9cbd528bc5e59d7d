package enqueue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// TestGateQueueIsFair has a namespace with many Gates, some enqueued by a resync and some by events.
func TestGateQueueIsFair(t *testing.T) {
	q := NewQueues(func() workqueue.TypedRateLimiter[reconcile.Request] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Second)
	})
	defer q.GateQueue.ShutDown()
	gateOf := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	interval := func(key types.NamespacedName) { q.GateQueue.AddAfter(reconcile.Request{NamespacedName: key}, 0) }
	for i := range 3 {
		interval(gateOf("busy", fmt.Sprint("interval", i)))
	}
	q.PrioritizeGate(gateOf("busy", "due"), queue.Hold)
	interval(gateOf("busy", "due"))
	for i := range 3 {
		q.Gate(gateOf("busy", fmt.Sprint("event", i)))
	}
	q.Gate(gateOf("calm", "event"))
	interval(gateOf("calm", "interval"))
	var got []string
	for range 9 {
		gate, _ := q.GateQueue.Get()
		got = append(got, gate.String())
		q.GateQueue.Done(gate)
	}
	want := []string{
		"busy/due", "calm/event", "busy/event0", "busy/event1", "busy/event2", "busy/interval0", "calm/interval", "busy/interval1", "busy/interval2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestEventBeforeResponseIsOwnWrite(t *testing.T) {
	with := func(version, heldBy string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetResourceVersion(version)
		obj.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: heldBy})
		return obj
	}
	held, changed, released := with("1", "shop/production"), with("2", "shop/production"), with("2", "")
	e, key := &Handlers{Versions: &ownwrites.Versions[target.Key]{}}, target.Key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "apps"}}
	if e.isOwnWrite(key, held, released) {
		t.Error("a release by another client is an own write")
	}
	end := e.Versions.StartWrite(key)
	if !e.isOwnWrite(key, held, released) {
		t.Error("the event of a release in progress is no own write")
	}
	if e.isOwnWrite(key, held, changed) || e.isOwnWrite(key, held, nil) {
		t.Error("another change or the deletion is an own write")
	}
	end()
	if e.isOwnWrite(key, held, released) {
		t.Error("a release after the write is an own write")
	}
	e.Versions.Wrote(key, "2")
	if !e.isOwnWrite(key, held, changed) {
		t.Error("a written version is no own write")
	}
}

func TestNewCloseIsUrgent(t *testing.T) {
	with := func(name, value string) *v1alpha1.Gate {
		return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{name: value}}}
	}
	requested := v1alpha1.CloseRequestedAtAnnotation
	for name, tc := range map[string]struct {
		before, after *v1alpha1.Gate
		want          bool
	}{
		"a close":            {with("x", "y"), with(requested, "1"), true},
		"another close":      {with(requested, "1"), with(requested, "2"), true},
		"the same close":     {with(requested, "1"), with(requested, "1"), false},
		"a close is removed": {with(requested, "1"), with("x", "y"), false},
		"a close in a line":  {with("x", "y"), with(v1alpha1.UnhandledAnnotation, "1"), true},
		"an open":            {with("x", "y"), with(v1alpha1.OpenRequestedAtAnnotation, "1"), false},
	} {
		if got := closes(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
