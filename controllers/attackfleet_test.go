package controllers

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// fleetLockIn returns the GateLock of all namespaces that a namespace has.
func (w *world) fleetLockIn(namespace string) *lockv1alpha1.GateLock {
	w.Helper()
	obj := &lockv1alpha1.GateLock{}
	w.Must(client.IgnoreNotFound(cluster.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: lockv1alpha1.AllNamespacesLockName}, obj)))
	return obj
}

// The API server takes a selector that nobody can evaluate, such as In without values. The policy of the lock must not see it.
func TestASelectorThatIsNotValidIsNotLocked(t *testing.T) {
	w := locking(t)
	w.AllowCrossNamespaceRefs, w.Own = true, w.NewNamespace()
	for name, expression := range map[string]v1alpha1.LabelSelectorRequirement{
		"in":       {Key: "tier", Operator: metav1.LabelSelectorOpIn},
		"not-in":   {Key: "tier", Operator: metav1.LabelSelectorOpNotIn},
		"exists":   {Key: "tier", Operator: metav1.LabelSelectorOpExists, Values: []string{"x"}},
		"nonsense": {Key: "tier", Operator: "Nonsense"},
	} {
		spanning, plain := w.inLabelled("team", "shop"), all()
		spanning.NamespaceSelector.MatchExpressions = []v1alpha1.LabelSelectorRequirement{expression}
		plain.MatchExpressions = []v1alpha1.LabelSelectorRequirement{expression}
		g := w.ClosedGate(name, spanning, plain, named("apps"))
		_, _ = w.try(g)
		_, _ = w.try(g)
	}
	got := w.fleetLockIn(w.Own).Spec
	for _, l := range got.Selectors["Kustomization"] {
		if l.NamespaceSelector != nil && l.NamespaceSelector.MatchLabels["team"] == "shop" && l.NamespaceSelector.MatchLabels[fleetLabel] == w.Namespace {
			t.Errorf("the GateLock of all namespaces has %+v", l)
		}
	}
	if !got.Gates[w.Namespace+"/in"] {
		t.Errorf("the GateLock of all namespaces has %+v", got)
	}
	if got := w.lock(w.Namespace).Spec; len(got.Selectors) > 0 || len(got.Targets["Kustomization/apps"]) != 4 {
		t.Errorf("the GateLock has %+v", got)
	}
}

// A controller that was moved to another namespace has left a GateLock there, which no policy reads and nobody writes.
func TestAGateLockOfAllNamespacesElsewhereKeepsNoGateFromGoing(t *testing.T) {
	w := locking(t)
	w.AllowCrossNamespaceRefs, w.Own = true, w.NewNamespace()
	g := w.ClosedGate("freeze", w.everywhere())
	w.reconcile(g)
	if !w.fleetLockIn(w.Own).Spec.Gates[key(g)] {
		t.Fatal("not locked")
	}
	w.Own = w.NewNamespace()
	w.restart()
	w.reconcile(g)
	w.Must(cluster.Client.Delete(w.Context(), g))
	for range 5 {
		_, _ = w.try(g)
	}
	if err := w.TryRead(g); !apierrors.IsNotFound(err) {
		t.Errorf("the gate is still there: %v, finalizers %v", err, g.Finalizers)
	}
}

// It has locked all namespaces, and now it has to do with one alone.
func TestAControllerOfOneNamespaceEmptiesItsGateLockOfAllNamespaces(t *testing.T) {
	w := locking(t)
	w.AllowCrossNamespaceRefs, w.Own = true, w.Namespace
	g, elsewhere := w.ClosedGate("freeze", w.everywhere()), w.gateIn(w.NewNamespace(), "freeze", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{w.everywhere()},
	})
	w.reconcile(g)
	w.reconcile(elsewhere)
	if got := w.fleetLockIn(w.Own).Spec; !got.Gates[key(g)] || !got.Gates[key(elsewhere)] {
		t.Fatalf("the GateLock has %+v", got)
	}
	w.Namespaces = map[string]ctrlcache.Config{w.Own: {}}
	w.restart()
	w.reconcile(g)
	if got := w.fleetLockIn(w.Own).Spec; len(got.Gates)+len(got.Selectors) > 0 {
		t.Errorf("the GateLock has %+v", got)
	}
	w.Must(cluster.Client.Delete(w.Context(), g))
	for range 5 {
		_, _ = w.try(g)
	}
	if err := w.TryRead(g); !apierrors.IsNotFound(err) {
		t.Errorf("the gate is still there: %v, finalizers %v", err, g.Finalizers)
	}
}

func TestSelectorsForWhichTheGateLockHasNoRoomAreHeldAllTheSame(t *testing.T) {
	w := fleetLocking(t)
	there := w.NewNamespace()
	w.relabelNamespace(there, nil)
	app := w.member(there, "apps")
	values := make([]string, 8000)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	ref := func(i int) v1alpha1.TargetReference {
		r := w.inLabelled("team", "shop")
		r.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{fleetLabel: w.Namespace}, MatchExpressions: []v1alpha1.LabelSelectorRequirement{
			{Key: fmt.Sprintf("exempt-%d", i), Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
		r.MatchExpressions = []v1alpha1.LabelSelectorRequirement{{Key: "never", Operator: metav1.LabelSelectorOpNotIn, Values: values}}
		return r
	}
	gates := make([]*v1alpha1.Gate, 2)
	defer func() { // the GateLocks of other worlds need the room
		for _, g := range gates {
			w.Must(cluster.Client.Delete(w.Context(), g))
			w.reconcile(g)
		}
	}()
	for n := range gates {
		refs := make([]v1alpha1.TargetReference, 5)
		for i := range refs {
			refs[i] = ref(n*len(refs) + i)
		}
		gates[n] = w.ClosedGate(fmt.Sprintf("freeze-%d", n), refs...)
		w.reconcile(gates[n])
	}
	w.expectHeld(app, gates...)
	equal(t, failuresOf(gates[1]), []string{"GateLock/all-namespaces LockFull"})
	if n := len(failuresOf(gates[0])); n > 0 || len(w.fleetLockIn(w.Own).Spec.Selectors["Kustomization"]) < 5 {
		t.Errorf("the first has %d failures", n)
	}
	w.writes.take("")
	w.reconcile(gates[1])
	expectNone(t, w.writes.take("GateLock"))

	w.open(gates[0], start)
	w.reconcile(gates[0])
	w.reconcile(gates[1])
	expectNone(t, failuresOf(gates[1]))
	w.expectHolder(app, gates[1])
}
