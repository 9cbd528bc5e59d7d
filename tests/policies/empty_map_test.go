package policies

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// A manifest with an empty map removes the last label or annotation. The API server then passes null to the policies.
func TestManifestWithEmptyMapsIsAccepted(t *testing.T) {
	w := newWorld(t)
	w.gate("production")
	source := map[string]any{"interval": "1h", "url": "https://example.com/repository"}
	for kind, object := range map[string]struct {
		apiVersion string
		spec       map[string]any
	}{
		"Gate":          {v1alpha1.GroupVersion.String(), map[string]any{"default": "closed"}},
		"GateException": {v1alpha1.GroupVersion.String(), map[string]any{"gateRef": map[string]any{"name": "production"}, "default": "closed", "validFrom": "2040-01-01T00:00:00Z", "validUntil": "2040-01-02T00:00:00Z"}},
		"GateReceiver":  {v1alpha1.GroupVersion.String(), map[string]any{"type": "generic", "action": "close", "secretRef": map[string]any{"name": "token"}, "gateRefs": []any{map[string]any{"name": "production"}}}},
		"GatedSource":   {v1alpha1.GroupVersion.String(), map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "app"}}},
		"GitRepository": {"source.toolkit.fluxcd.io/v1", source},
		"Kustomization": {"kustomize.toolkit.fluxcd.io/v1", map[string]any{"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "app"}}},
	} {
		for _, value := range []map[string]string{{"a": "b"}, {}} {
			obj := harness.Object(object.apiVersion, kind, w.Key("empty"))
			obj.SetLabels(value)
			obj.SetAnnotations(value)
			obj.Object["spec"] = object.spec
			if err := w.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("git")); err != nil {
				t.Errorf("%s with labels %v: %v", kind, value, err)
			}
			if _, has, _ := unstructured.NestedString(obj.Object, "metadata", "labels", "a"); has != (len(value) > 0) {
				t.Errorf("%s has labels %v", kind, obj.GetLabels())
			}
		}
	}
}
