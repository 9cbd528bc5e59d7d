package lock

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func (w *world) json(obj *unstructured.Unstructured, patch string) error {
	return w.Client.Patch(w.Context(), obj.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner("kubectl-patch"))
}

// replace acts like kubectl replace, with the live object or with the manifest in Git.
func (w *world) replace(obj *unstructured.Unstructured, fromGit bool) {
	w.Helper()
	live := w.read(obj.DeepCopy())
	if fromGit {
		fresh := w.inGit(obj.GetName())
		fresh.SetResourceVersion(live.GetResourceVersion())
		live = fresh
	} else {
		unstructured.RemoveNestedField(live.Object, "spec", "suspend")
	}
	w.Must(w.Client.Update(w.Context(), live, client.FieldOwner("kubectl-replace")))
}

// controllerHolds acts like the controller when it takes over a hold.
func (w *world) controllerHolds(obj *unstructured.Unstructured) error {
	config := harness.Object(obj.GetAPIVersion(), obj.GetKind(), client.ObjectKeyFromObject(obj))
	config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: w.gate("production")})
	config.Object["spec"] = map[string]any{"suspend": true}
	return w.asController(config)
}

// controllerReleases acts like the controller when it releases an object.
func (w *world) controllerReleases(obj *unstructured.Unstructured) error {
	return w.asController(harness.Object(obj.GetAPIVersion(), obj.GetKind(), client.ObjectKeyFromObject(obj)))
}

func (w *world) asController(config *unstructured.Unstructured) error {
	return w.controller.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(config), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
}

// remove deletes an object that may be held. The controller releases it first.
func (w *world) remove(obj *unstructured.Unstructured) {
	w.Helper()
	config := rawRelease()
	w.Must(w.controller.Patch(w.Context(), obj.DeepCopy(), config))
	w.Must(w.Client.Delete(w.Context(), obj.DeepCopy()))
}

func rawRelease() client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null},"spec":{"suspend":null}}`))
}
