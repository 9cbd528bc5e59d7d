package check_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
)

func TestUnknownAnnotationsAreFound(t *testing.T) {
	wrong := map[string]string{"open.gate.fluxcd.io/requestedat": "x", "open.gate.fluxcd.io/requestedAt": "x", "example.com/held-by": "x"}
	g := gate("production")
	g.Annotations = wrong
	e := &v1alpha1.GateException{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "hotfix", Annotations: wrong}}
	app := kustomization(t, "apps", "}")
	app.SetAnnotations(map[string]string{"gating.toolkit.fluxcd.io/held-by": "x", "gating.toolkit.fluxcd.io/heldBy": "x"})
	const open = ": annotation open.gate.fluxcd.io/requestedat: unknown annotation, did you mean open.gate.fluxcd.io/requestedAt?"
	finds(t, check.Annotations([]v1alpha1.Gate{g}, []*v1alpha1.GateException{e}, []*unstructured.Unstructured{app}),
		"warning Gate flux-system/production"+open, "warning GateException flux-system/hotfix"+open,
		"warning Kustomization "+app.GetNamespace()+"/apps: annotation gating.toolkit.fluxcd.io/held-by: unknown annotation, did you mean gating.toolkit.fluxcd.io/heldBy?")
}
