package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The cache of a shard may learn sooner than that of all Gates, which says until then
// that another shard has the Gate: nobody else would ask again.
func TestAGateThatIsGoneFromTheCacheOfAllShardsIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind)
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind, &metav1.PartialObjectMetadata{})
	all := &informertest.FakeInformers{Scheme: scheme}
	woken := &woken{}
	r := &kindReconciler{allGates: all, targets: NewTargetCache(nil, nil, nil, nil), locks: &LockCache{}, wake: woken}
	if err := r.watchAllGates(t.Context()); err != nil {
		t.Fatal(err)
	}
	informer, err := all.FakeInformerForKind(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.Namespace, obj.Name = "flux-system", "production"
	informer.Add(obj)
	if len(woken.take().machines) != 0 {
		t.Error("a Gate that is there is looked at")
	}
	informer.Delete(obj)
	equal(t, woken.take().machines, []types.NamespacedName{{Namespace: "flux-system", Name: "production"}})
}
