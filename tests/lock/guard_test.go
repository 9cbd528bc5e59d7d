package lock

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestHeldObjectCannotBeDeleted(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app, other := w.inGit("app"), w.inGit("other", "true")
	w.apply(app)
	w.apply(other)
	err := w.Client.Delete(w.Context(), app.DeepCopy())
	want := "Kustomization " + w.Namespace + "/app is held by gate '" + w.gate("production") + "' and cannot be deleted until it opens"
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := w.Client.DeleteAllOf(w.Context(), app.DeepCopy(), client.InNamespace(w.Namespace)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("deleted with all others: got %v", err)
	}
	w.expectHeld(app, w.gate("production"))
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(other), other); err == nil {
		w.Must(w.Client.Delete(w.Context(), other)) // suspended by a user, so deletion is allowed
	}
	w.lock(w.unlocked())
	w.remove(app)
}

// The annotations had no room for a name when the Gate closed. A user who may patch the object can cause that, and then forge the name.
func TestHeldObjectWithoutGateNameCannotBeDeleted(t *testing.T) {
	for name, attack := range map[string]func(*world, *unstructured.Unstructured){
		"unchanged": func(*world, *unstructured.Unstructured) {},
		"with a forged name": func(w *world, app *unstructured.Unstructured) {
			w.Annotate(app.DeepCopy(), v1alpha1.HeldByAnnotation, "x/y")
		},
		"without owners of its fields": func(w *world, app *unstructured.Unstructured) {
			w.Must(w.Merge(app.DeepCopy(), `{"metadata":{"managedFields":[{}]}}`))
		},
		"suspended by another client, too": func(w *world, app *unstructured.Unstructured) {
			w.Must(w.Flux(app.DeepCopy(), `{"spec":{"suspend":true}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			app := w.apply(w.inGit("app"))
			config := harness.Object(app.GetAPIVersion(), app.GetKind(), client.ObjectKeyFromObject(app))
			config.Object["spec"] = map[string]any{"suspend": true}
			w.Must(w.asController(config))
			attack(w, app)
			if err := w.Client.Delete(w.Context(), app.DeepCopy()); !apierrors.IsForbidden(err) {
				t.Errorf("got %v", err)
			}
			w.remove(app)
		})
	}
}

// A restored backup or a copy of a held object has a copy of the annotation.
func TestCopyOfHeldObjectCanBeDeleted(t *testing.T) {
	w := newWorld(t)
	app := w.apply(w.copied("elsewhere/gone", "true"))
	w.Must(w.Client.Delete(w.Context(), app))
}

func TestOnlyControllerWritesGateLocks(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	opened := &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: lockv1alpha1.GateLockName}}
	w.Must(w.Client.Get(w.Context(), client.ObjectKeyFromObject(opened), opened))
	opened.Spec = lockv1alpha1.GateLockSpec{}
	other := newWorld(t)
	for _, user := range []string{"admin", "system:serviceaccount:" + w.Namespace + ":gating-controller", "gating-controller", "system:serviceaccount:flux-system:kustomize-controller"} {
		c := w.Person(user, "system:masters").Client
		for verb, write := range map[string]func() error{
			"create": func() error {
				return c.Create(w.Context(), &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: lockv1alpha1.GateLockName}})
			},
			"update": func() error { return c.Update(w.Context(), opened.DeepCopy()) },
			"patch": func() error {
				return c.Patch(w.Context(), opened.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":null}`)))
			},
			"delete": func() error { return c.Delete(w.Context(), opened.DeepCopy()) },
		} {
			if err := write(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the gating-controller writes GateLocks") {
				t.Errorf("%s by %q: %v", verb, user, err)
			}
		}
	}
	app := w.inGit("app")
	w.apply(app)
	w.expectHeld(app, w.gate("production"))
}

func TestNamespaceDeletionRemovesGateLock(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	lock := &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: lockv1alpha1.GateLockName}}
	// No namespace controller runs in this test, so the namespace stays under deletion.
	w.Must(w.Client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	w.Eventually("the GateLock can be deleted", func() error {
		return client.IgnoreNotFound(w.Client.Delete(w.Context(), lock))
	})
}

func TestGateLockHasOneName(t *testing.T) {
	w := newWorld(t)
	err := w.controller.Create(w.Context(), &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "another"}})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name must be closed, or all-namespaces") {
		t.Errorf("got %v", err)
	}
}

// A new kind must also be added to the policies.
func TestPoliciesCoverAllKindsWithSuspend(t *testing.T) {
	var want []string
	for _, adapter := range target.All() {
		if !target.Suspends(adapter) {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(adapter.GroupKind().WithVersion(""))
		want = append(want, plural.Group+"/"+plural.Resource)
	}
	slices.Sort(want)
	for _, file := range []string{"hold.yaml", "delete.yaml", "overlay.yaml"} {
		content, err := os.ReadFile(filepath.Join(harness.Root(), "config", "lock", file))
		if err != nil {
			t.Fatal(err)
		}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := yaml.Unmarshal([]byte(strings.Split(string(content), "\n---\n")[0]), policy); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, resource := range rule.Resources {
				got = append(got, rule.APIGroups[0]+"/"+resource)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s is for %q, want %q", file, got, want)
		}
	}
}
