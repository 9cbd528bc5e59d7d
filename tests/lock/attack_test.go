package lock

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// stateOf returns the state of an object for the controller.
func stateOf(obj *unstructured.Unstructured) target.State {
	us := target.Identity{Manager: v1alpha1.FieldManager, HeldBy: v1alpha1.HeldByAnnotation}
	trimmed := obj.DeepCopy()
	target.Trim(trimmed, us)
	return target.Of(trimmed).Observe(&target.Object{Unstructured: *trimmed}, us)
}

// copied returns an object in Git that a user has copied from a cluster while it was held.
func (w *world) copied(heldBy string, suspend ...string) *unstructured.Unstructured {
	obj := w.inGit("app", suspend...)
	obj.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: heldBy})
	return obj
}

// The controller must not take a hold for that of another client, because it would never release it.
func TestLockHoldIsOursDespiteCopiedAnnotation(t *testing.T) {
	w := newWorld(t)
	for name, arrange := range map[string]func() *unstructured.Unstructured{
		"Git has a copy, with the right name": func() *unstructured.Unstructured {
			w.lock(w.locked())
			return w.apply(w.copied(w.gate("production")))
		},
		"Git has a copy, with another name": func() *unstructured.Unstructured {
			w.lock(w.locked())
			return w.apply(w.copied("a/b"))
		},
		"a suspended copy that is resumed": func() *unstructured.Unstructured {
			w.lock(w.unlocked())
			app := w.apply(w.copied("a/b", "true"))
			w.lock(w.locked())
			w.resume(app)
			return app
		},
		"the annotation is changed before the controller takes the hold over": func() *unstructured.Unstructured {
			w.lock(w.locked())
			app := w.apply(w.inGit("app"))
			w.Must(w.Flux(app, `{"metadata":{"annotations":{"`+v1alpha1.HeldByAnnotation+`":"a/b"}}}`))
			return app
		},
	} {
		app := w.read(arrange())
		if got := stateOf(app); got != target.Locked || harness.HeldBy(app) != w.gate("production") {
			t.Errorf("%s: state %d, held by %q", name, got, harness.HeldBy(app))
		}
		w.lock(w.unlocked())
		w.remove(app)
	}
}

func TestSuspendedCopyIsNotClaimed(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.apply(w.copied(w.gate("production"), "true"))
	w.Must(w.Flux(app, `{"metadata":{"labels":{"touched":"yes"}}}`))
	if w.read(app); stateOf(app) != target.SuspendedByOthers {
		t.Errorf("state %d", stateOf(app))
	}
	w.Must(w.Client.Delete(w.Context(), app))
}

func TestObjectInDeletedNamespaceCanBeDeleted(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.apply(w.inGit("app"))
	w.Must(w.Client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	w.Eventually("the object can be deleted", func() error {
		return client.IgnoreNotFound(w.Client.Delete(w.Context(), app.DeepCopy()))
	})
}

func TestSpecCannotBeRemoved(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.read(w.apply(w.inGit("app")))
	delete(app.Object, "spec")
	if err := w.Client.Update(w.Context(), app); err == nil && !harness.Suspended(app) {
		t.Error("without a spec, the object is not held")
	}
	w.expectHeld(w.inGit("app"), w.gate("production"))
	if err := w.Client.Delete(w.Context(), w.inGit("app")); !apierrors.IsForbidden(err) {
		t.Errorf("delete: got %v", err)
	}
}

// The policy truncates the list before any expensive step.
func TestCostIsIndependentOfNumberOfGateNames(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	for _, value := range []string{strings.Repeat("a,", 60000), strings.Repeat(",", 120000), strings.Repeat("production,", 500)} {
		app := w.inGit("long")
		app.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: value})
		// Without a bound, the policy exceeds its cost budget and refuses the object.
		if err := w.Client.Create(w.Context(), app, client.DryRunAll); err != nil || harness.HeldBy(app) != w.gate("*") {
			t.Errorf("%d bytes: held by %q, %.200v", len(value), harness.HeldBy(app), err)
		}
	}
}

func TestUnusualObjectsAreAccepted(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	for name, patch := range map[string]string{
		"annotations null": `{"metadata":{"annotations":null}}`,
		"labels null":      `{"metadata":{"labels":null}}`,
		"suspend null":     `{"spec":{"suspend":null}}`,
		"empty lists":      fmt.Sprintf(`{"metadata":{"annotations":{%q:" , "},"labels":{"a":""}}}`, v1alpha1.GatesAnnotation),
	} {
		for _, object := range []string{"app", "other"} {
			obj := w.apply(w.inGit(object))
			if err := w.Flux(obj, patch); err != nil {
				t.Errorf("%s of %s: %v", name, object, err)
			}
			if w.read(obj); harness.Suspended(obj) != (object == "app") {
				t.Errorf("%s of %s: suspended %t", name, object, harness.Suspended(obj))
			}
		}
	}
}

// A manifest with an empty map removes the last label or annotation. The API server then passes null to the policies.
func TestLastLabelOrAnnotationCanBeRemoved(t *testing.T) {
	w := newWorld(t)
	spec := w.locked()
	spec.Labels = map[string]lockv1alpha1.LabelLocks{"Kustomization/team=a": {{MatchLabels: map[string]string{"team": "a"}, Gates: []string{w.gate("production")}}}}
	spec.Overlays = map[string][]lockv1alpha1.OverlayLock{"Kustomization": {hotfix(w.gate("production"))}}
	for object, locked := range map[string]bool{"app": true, "other": false} {
		for name, empty := range map[string]map[string]string{"no map": nil, "an empty map": {}} {
			t.Run(name+" of "+object, func(t *testing.T) {
				w := &world{World: w.On(t), controller: w.controller}
				w.lock(w.unlocked())
				obj := labelled(w.inGit(object), "team=a")
				obj.SetAnnotations(map[string]string{"a": "b"})
				w.apply(obj)
				w.lock(spec)
				config := w.inGit(object)
				config.SetLabels(empty)
				config.SetAnnotations(empty)
				w.apply(config)
				if w.read(obj); harness.Suspended(obj) != locked || len(obj.GetLabels()) > 0 {
					t.Errorf("suspended %t, labels %v", harness.Suspended(obj), obj.GetLabels())
				}
				w.remove(obj)
			})
		}
	}
}
