package replicas

import (
	"errors"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// token is the token of all receivers.
const token = "s3cr3t-0123456789abcdef"

func (w *world) create(obj client.Object) {
	w.Helper()
	obj.SetNamespace(w.Namespace)
	w.Must(client.IgnoreAlreadyExists(w.Client.Create(w.Context(), obj)))
}

// receiver creates a receiver that requests the action in the body on a Gate, and returns the path of its webhook.
func (w *world) receiver(name, kind, gate string) string {
	w.Helper()
	state, action, expression := v1alpha1.StateClosed, v1alpha1.RequestAction(""), "string(req.action)"
	if kind == v1alpha1.GenericReceiver {
		state, action, expression = v1alpha1.StateOpened, v1alpha1.RequestClose, ""
	}
	w.create(&v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: gate}, Spec: v1alpha1.GateSpec{Default: state}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}, StringData: map[string]string{v1alpha1.ReceiverTokenKey: token}})
	obj := &v1alpha1.GateReceiver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GateReceiverSpec{
		Type: kind, SecretRef: &meta.LocalObjectReference{Name: "token"},
		GateRefs: []v1alpha1.GateReference{{Name: gate}}, Action: action, ActionExpr: expression,
	}}
	w.create(obj)
	return obj.GetWebhookPath(token)
}

// ready waits until all receivers are ready, and a leader has reconciled their Gates.
func (w *world) ready() {
	w.Helper()
	w.Eventually("receivers and gates are ready", func() error {
		receivers, gates := &v1alpha1.GateReceiverList{}, &v1alpha1.GateList{}
		if err := errors.Join(w.Client.List(w.Context(), receivers, client.InNamespace(w.Namespace)),
			w.Client.List(w.Context(), gates, client.InNamespace(w.Namespace))); err != nil {
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

// leader returns the holder of the lease, empty if there is none.
func (w *world) leader() string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: harness.RuntimeNamespace, Name: "gating-controller-leader-election"}
	w.Must(client.IgnoreNotFound(w.Client.Get(w.Context(), key, lease)))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// stored is a request that the API server has stored.
type stored struct {
	action v1alpha1.RequestAction
	at     string
	reason string
}

// history has all requests on the Gates of a namespace in the order in which they were stored. A watch delivers every version.
type history struct {
	mu   sync.Mutex
	gate map[string][]stored
}

func (w *world) record() *history {
	w.Helper()
	h := &history{gate: map[string][]stored{}}
	w.Follow(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind), h.add)
	return h
}

func (h *history) add(g *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	annotations := g.GetAnnotations()
	for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
		prefix := string(action) + ".gate.fluxcd.io/"
		now := stored{action: action, at: annotations[prefix+"requestedAt"], reason: annotations[prefix+"reason"]}
		last := stored{action: action}
		for _, s := range h.gate[g.GetName()] {
			if s.action == action {
				last = s
			}
		}
		if now != last {
			h.gate[g.GetName()] = append(h.gate[g.GetName()], now)
		}
	}
}

// of returns the requests on a Gate.
func (h *history) of(gate string) []stored {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]stored{}, h.gate[gate]...)
}

// has returns the index of a request in the history of a Gate, -1 if it was never stored.
func (h *history) has(gate string, action v1alpha1.RequestAction, reason string) int {
	for i, s := range h.of(gate) {
		if s.action == action && s.reason == reason {
			return i
		}
	}
	return -1
}
