package lock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// fleet writes the GateLock of all namespaces and waits until the policy considers it. The returned function empties it, because it would
// affect the namespaces of other tests.
func (w *world) fleet(spec lockv1alpha1.GateLockSpec) (empty func()) {
	w.Helper()
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.RuntimeNamespace}}
	w.Must(client.IgnoreAlreadyExists(w.Client.Create(w.Context(), own)))
	marker := fmt.Sprintf("probe-%d", time.Now().UnixNano())
	if spec.Selectors == nil {
		spec.Selectors = map[string][]lockv1alpha1.SelectorLock{}
	}
	spec.Selectors["Kustomization"] = append(spec.Selectors["Kustomization"], lockv1alpha1.SelectorLock{Name: marker, Gates: []string{"ops/" + marker}})
	w.writeFleet(spec)
	w.probes(w.Namespace, marker, true)
	return func() {
		w.writeFleet(lockv1alpha1.GateLockSpec{})
		w.probes(w.Namespace, marker, false)
	}
}

// probes waits until a new object would be held or not. The API server reads the parameters of the policy from its own watches, which lag
// behind.
func (w *world) probes(namespace, name string, held bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("a new %s is held: %t", name, held), func() error {
		probe := w.in(namespace, name)
		if err := w.Client.Create(w.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if harness.Suspended(probe) != held {
			return errors.New("the opposite is true")
		}
		return nil
	})
}

func (w *world) writeFleet(spec lockv1alpha1.GateLockSpec) {
	w.Helper()
	obj := &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: harness.RuntimeNamespace, Name: lockv1alpha1.AllNamespacesLockName}}
	err := w.controller.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	w.Must(client.IgnoreNotFound(err))
	if obj.Spec = spec; err != nil {
		w.Must(w.controller.Create(w.Context(), obj))
	} else {
		w.Must(w.controller.Update(w.Context(), obj))
	}
}

// freeze is the lock of a Gate that holds all Kustomizations in the namespaces of one world.
func (w *world) freeze() lockv1alpha1.GateLockSpec {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": w.Namespace}}
	return lockv1alpha1.GateLockSpec{Gates: map[string]bool{"ops/freeze": true}, Selectors: map[string][]lockv1alpha1.SelectorLock{
		"Kustomization": {{NamespaceSelector: selector, Gates: []string{"ops/freeze"}}},
	}}
}

// newNamespace creates a namespace with labels.
func (w *world) newNamespace(labels map[string]string) string {
	w.Helper()
	return w.NewNamespace(func(n *corev1.Namespace) { n.Labels = labels })
}

// in returns an object in Git for another namespace.
func (w *world) in(namespace, name string) *unstructured.Unstructured {
	obj := w.inGit(name)
	obj.SetNamespace(namespace)
	return obj
}

// No client writes anything between the creation of the namespace and that of its first object.
func TestFirstObjectOfNewNamespaceIsCreatedHeld(t *testing.T) {
	w := newWorld(t)
	defer w.fleet(w.freeze())()
	for range 20 {
		frozen, free := w.in(w.newNamespace(map[string]string{"fleet": w.Namespace}), "app"), w.in(w.newNamespace(nil), "app")
		w.apply(frozen)
		w.expectHeld(frozen, "ops/freeze")
		w.apply(free)
		w.expectFree(free)
	}
}

func TestLockOfAllNamespacesCannotBeBypassed(t *testing.T) {
	w := newWorld(t)
	defer w.fleet(w.freeze())()
	app := w.in(w.newNamespace(map[string]string{"fleet": w.Namespace}), "app")
	w.apply(app)
	w.resume(app)
	w.expectHeld(app, "ops/freeze")
	dry := w.apply(w.in(app.GetNamespace(), "app"), client.DryRunAll)
	if !harness.Suspended(dry) {
		t.Error("Flux would detect a drift")
	}

	t.Run("the object names an open gate", func(*testing.T) {
		app := w.in(app.GetNamespace(), "naming")
		app.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: "ops/open"})
		w.apply(app)
		w.expectHeld(app, "ops/freeze")
	})
	t.Run("a person has suspended the object", func(t *testing.T) {
		app := w.in(app.GetNamespace(), "suspended")
		w.Must(unstructured.SetNestedField(app.Object, true, "spec", "suspend"))
		w.apply(app)
		if w.read(app); harness.HeldBy(app) != "" || len(owners(app)) != 1 {
			t.Errorf("held by %q, owned by %v", harness.HeldBy(app), owners(app))
		}
	})
}

func TestLockFollowsNamespaceLabels(t *testing.T) {
	w := newWorld(t)
	defer w.fleet(w.freeze())()
	namespace := w.newNamespace(nil)
	label := func(patch string) {
		obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		w.Must(w.Client.Patch(w.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	w.probes(namespace, "app", false)
	label(`{"metadata":{"labels":{"fleet":"` + w.Namespace + `"}}}`)
	w.probes(namespace, "app", true)
	label(`{"metadata":{"labels":{"fleet":null}}}`)
	w.probes(namespace, "app", false)
}

func TestControllerNamespaceIsNotHeld(t *testing.T) {
	w := newWorld(t)
	defer w.fleet(lockv1alpha1.GateLockSpec{Selectors: map[string][]lockv1alpha1.SelectorLock{"Kustomization": {{Name: "own-" + w.Namespace, Gates: []string{"ops/freeze"}}}}})()
	own, other := w.in(harness.RuntimeNamespace, "own-"+w.Namespace), w.inGit("own-"+w.Namespace)
	w.apply(own)
	w.expectFree(own)
	w.Must(w.Client.Delete(w.Context(), own))
	w.apply(other)
	w.expectHeld(other, "ops/freeze")
}

// If both GateLocks lock an object, it has the name of only one Gate: the controller adds the other.
func TestBothLocksApply(t *testing.T) {
	w := newWorld(t)
	freeze := func() lockv1alpha1.GateLockSpec {
		return lockv1alpha1.GateLockSpec{Selectors: map[string][]lockv1alpha1.SelectorLock{"Kustomization": {{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace}}, Gates: []string{"ops/freeze"},
		}}}}
	}
	w.lock(w.locked())
	empty := w.fleet(freeze())
	app := w.inGit("app")
	w.apply(app)
	if by := harness.HeldBy(w.read(app)); !harness.Suspended(app) || by != "ops/freeze" && by != w.gate("production") || len(owners(app)) > 0 {
		t.Errorf("suspended %t, held by %q, owned by %v", harness.Suspended(app), by, owners(app))
	}
	empty()
	w.lock(w.unlocked())
	defer w.fleet(freeze())()
	w.resume(app)
	if !harness.Suspended(w.read(app)) {
		t.Error("one lock is open, and the other does not hold the object")
	}
}

func TestPolicyAndControllerSelectSameObjects(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(3, 4))
	pick, labels := draws(random)
	namespaces := map[string]map[string]string{}
	for range 12 {
		has := labels(3)
		name := w.newNamespace(has)
		has["kubernetes.io/metadata.name"] = name
		namespaces[name] = has
	}
	held, all := 0, 0
	for range 6 {
		spec := lockv1alpha1.GateLockSpec{}
		refs := map[string][]v1alpha1.TargetReference{}
		for _, gate := range []string{"ops/a", "ops/b", "ops/c"} {
			for range 1 + random.IntN(2) {
				ref := v1alpha1.TargetReference{Kind: pick("Kustomization", "Kustomization", "HelmRelease"), Name: pick("*", "app", "other")}
				if ref.Name == "*" {
					ref.MatchLabels, ref.MatchExpressions = labels(1), expressions(random, 1)
				}
				if ref.NamespaceSelector = (&v1alpha1.LabelSelector{MatchLabels: labels(1), MatchExpressions: expressions(random, 2)}); random.IntN(6) == 0 {
					ref.NamespaceSelector, ref.Namespace = nil, v1alpha1.AnyName
				}
				refs[gate] = append(refs[gate], ref)
			}
			lock.Put(&spec, gate, lock.NewPart(true, refs[gate]...))
		}
		empty := w.fleet(spec)
		for namespace, has := range namespaces {
			app := w.in(namespace, pick("app", "other", "third"))
			app.SetLabels(labels(3))
			var want []string
			for gate, refs := range refs {
				for _, ref := range refs {
					if matches(ref, app.GetName(), app.GetLabels()) && (ref.NamespaceSelector == nil || selects(ref.NamespaceSelector.Kubernetes(), has)) {
						want = append(want, gate)
					}
				}
			}
			w.Must(w.Client.Create(w.Context(), app, client.DryRunAll))
			if got := harness.HeldBy(app); got != target.FormatHeldBy(want) || harness.Suspended(app) != (len(want) > 0) {
				t.Errorf("%s with labels %v in a namespace with %v: suspended %t, held by %q, want %q of %+v", app.GetName(), app.GetLabels(), has, harness.Suspended(app), got, want, refs)
			}
			if all++; len(want) > 0 {
				held++
			}
		}
		empty()
	}
	if held < all/5 || held > all*4/5 {
		t.Errorf("%d of %d held, want a mix", held, all)
	}
}
