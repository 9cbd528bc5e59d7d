package replicas

import (
	"context"
	"errors"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// token of all receivers.
const token = "s3cr3t-0123456789abcdef"

func (w *world) create(obj client.Object) {
	w.Helper()
	obj.SetNamespace(w.namespace)
	w.must(client.IgnoreAlreadyExists(cluster.Client.Create(w.ctx, obj)))
}

// receiver creates a receiver that does to a Gate what the body says, and returns the
// path of its webhook.
func (w *world) receiver(name, kind, gate string) string {
	w.Helper()
	w.create(&v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: gate}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}, StringData: map[string]string{v1alpha1.ReceiverTokenKey: token}})
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GateReceiverSpec{
		Type: kind, SecretRef: &meta.LocalObjectReference{Name: "token"},
		Gates: []v1alpha1.GateReference{{Name: gate}}, ActionExpr: "string(req.action)",
	}}
	w.create(obj)
	return obj.GetWebhookPath(token)
}

// ready waits until all receivers are, and their Gates were seen by a leader.
func (w *world) ready() {
	w.Helper()
	w.eventually("receivers and gates are ready", func() error {
		receivers, gates := &v1alpha1.GateReceiverList{}, &v1alpha1.GateList{}
		if err := errors.Join(cluster.Client.List(w.ctx, receivers, client.InNamespace(w.namespace)),
			cluster.Client.List(w.ctx, gates, client.InNamespace(w.namespace))); err != nil {
			return err
		}
		for _, r := range receivers.Items {
			if !apimeta.IsStatusConditionTrue(r.Status.Conditions, meta.ReadyCondition) {
				return fmt.Errorf("%s: %v", r.Name, r.Status.Conditions)
			}
		}
		for _, g := range gates.Items {
			if g.Status.ObservedGeneration != g.Generation {
				return fmt.Errorf("gate %s was not reconciled", g.Name)
			}
		}
		return nil
	})
}

// leader returns who holds the lease, empty for nobody.
func (w *world) leader() string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: harness.RuntimeNamespace, Name: "gating-controller-leader-election"}
	w.must(client.IgnoreNotFound(cluster.Client.Get(w.ctx, key, lease)))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// stored is a request that the API server has stored.
type stored struct {
	action v1alpha1.RequestAction
	at     string
	reason string
}

// history has all requests on the Gates of a namespace in the order in which they
// were stored. A watch leaves none out.
type history struct {
	mu   sync.Mutex
	gate map[string][]stored
}

func (w *world) record() *history {
	w.Helper()
	h := &history{gate: map[string][]stored{}}
	list := &v1alpha1.GateList{}
	w.must(cluster.Client.List(w.ctx, list, client.InNamespace(w.namespace)))
	watcher, err := watchtools.NewRetryWatcherWithContext(w.ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return cluster.Client.Watch(ctx, &v1alpha1.GateList{}, client.InNamespace(w.namespace), &client.ListOptions{Raw: &options})
		},
	})
	w.must(err)
	go func() {
		for event := range watcher.ResultChan() {
			if g, ok := event.Object.(*v1alpha1.Gate); ok {
				h.add(g)
			}
		}
	}()
	w.Cleanup(watcher.Stop)
	return h
}

func (h *history) add(g *v1alpha1.Gate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
		prefix := string(action) + ".gate.fluxcd.io/"
		now := stored{action: action, at: g.Annotations[prefix+"requestedAt"], reason: g.Annotations[prefix+"reason"]}
		last := stored{action: action}
		for _, s := range h.gate[g.Name] {
			if s.action == action {
				last = s
			}
		}
		if now != last {
			h.gate[g.Name] = append(h.gate[g.Name], now)
		}
	}
}

// of returns the requests on a Gate.
func (h *history) of(gate string) []stored {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]stored{}, h.gate[gate]...)
}

// has returns where a request is in the history of a Gate, -1 if it was never stored.
func (h *history) has(gate string, action v1alpha1.RequestAction, reason string) int {
	for i, s := range h.of(gate) {
		if s.action == action && s.reason == reason {
			return i
		}
	}
	return -1
}
