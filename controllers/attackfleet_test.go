package controllers_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// fleetLockIn returns the GateLock of all namespaces that is in a namespace.
func (w *world) fleetLockIn(namespace string) *lockv1alpha1.GateLock {
	w.Helper()
	obj := &lockv1alpha1.GateLock{}
	w.Must(client.IgnoreNotFound(cluster.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: lockv1alpha1.AllNamespacesLockName}, obj)))
	return obj
}

func TestStoppedControllerKeepsGateLockOfAllNamespaces(t *testing.T) {
	for name, change := range map[string]func(w *world){
		// No policy reads the GateLock in the previous namespace, and no controller writes it.
		"it moves to another namespace": func(w *world) { w.Own = w.NewNamespace() },
		"it is restricted to its own":   func(w *world) { w.Namespaces = map[string]ctrlcache.Config{w.Own: {}} },
	} {
		t.Run(name, func(t *testing.T) {
			w := locking(t)
			w.AllowCrossNamespaceRefs, w.Own = true, w.Namespace
			g, elsewhere := w.ClosedGate("freeze", w.everywhere()), w.GateIn(w.NewNamespace(), "freeze", v1alpha1.GateSpec{
				Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{w.everywhere()},
			})
			w.Reconcile(g)
			w.Reconcile(elsewhere)
			if got := w.fleetLockIn(w.Own).Spec; !got.Gates[key(g)] || !got.Gates[key(elsewhere)] {
				t.Fatalf("the GateLock has %+v", got)
			}
			change(w)
			w.restart()
			w.Reconcile(g)
			if got := w.fleetLockIn(w.Own).Spec; !w.Spans() && len(got.Gates)+len(got.Selectors) > 0 {
				t.Errorf("the GateLock has %+v", got)
			}
			w.Must(cluster.Client.Delete(w.Context(), g))
			for range 5 {
				_, _ = w.Try(g)
			}
			if err := w.TryRead(g); !apierrors.IsNotFound(err) {
				t.Errorf("the gate is still there: %v, finalizers %v", err, g.Finalizers)
			}
		})
	}
}

func TestTargetsWithoutSpaceInGateLockAreHeld(t *testing.T) {
	const each = 150 // three Gates have more than the policy can compare an object with
	w := locking(t)
	app := w.NewKustomization("apps", map[string]string{"a": "shop", "g0": "0", "g1": "0", "g2": "0"})
	gates := make([]*v1alpha1.Gate, 3)
	for n := range gates {
		refs := make([]v1alpha1.TargetReference, each)
		for i := range refs {
			refs[i] = all()
			refs[i].MatchLabels = map[string]string{"a": "shop", fmt.Sprintf("g%d", n): fmt.Sprint(i)}
		}
		gates[n] = w.ClosedGate(fmt.Sprintf("freeze-%d", n), refs...)
		w.Reconcile(gates[n])
	}
	first, last := gates[0], gates[2]
	w.ExpectHeld(app, gates...)
	equal(t, failuresOf(last), []string{"GateLock/closed LockFull"})
	if locked := len(w.lock(w.Namespace).Spec.Labels["Kustomization/a=shop"]); len(failuresOf(first)) > 0 || locked < 2*each {
		t.Errorf("%d entries are locked, the first gate has %d failures", locked, len(failuresOf(first)))
	}
	w.Writes.Take("")
	w.Reconcile(last)
	expectNone(t, w.Writes.Take("GateLock"))

	w.Open(first, start)
	w.Reconcile(first)
	w.Reconcile(last)
	expectNone(t, failuresOf(last))
	w.ExpectHolder(app, gates[1:]...)
}
