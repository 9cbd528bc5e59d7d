package cli

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// publish replaces the content of the artifact apps with a ConfigMap of a revision.
func (w *world) publish(revision string) {
	w.Helper()
	config := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: apps\n  namespace: %s\ndata:\n  revision: %s\n", w.Namespace, revision)
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("apps"), revision, map[string]string{"apps.yaml": config}))
}

// published returns the Kustomization apps, which has applied revision v1 of the artifact.
func (w *world) published() *unstructured.Unstructured {
	w.Helper()
	w.publish("v1")
	apps := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("apps"))
	apps.Object["spec"] = map[string]any{"interval": "1h", "prune": true, "path": "./", "sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "apps"}}
	w.Create(apps)
	w.applies(apps, "v1")
	return apps
}

// applies waits until a Kustomization has applied a revision.
func (w *world) applies(obj *unstructured.Unstructured, revision string) {
	w.Helper()
	w.Eventually(obj.GetName()+" applies "+revision, func() error {
		if err := w.TryRead(obj); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(obj.Object, "status", "lastAppliedRevision"); got != revision {
			return fmt.Errorf("got revision %q", got)
		}
		return nil
	})
}

// isHeldBy waits until an object is held by Gates, which its annotation must name without the namespace, and until its condition reports
// that.
func (w *world) isHeldBy(obj *unstructured.Unstructured, gates string) {
	w.Helper()
	w.Eventually(obj.GetName()+" is held", func() error {
		if err := w.TryRead(obj); err != nil {
			return err
		}
		if status, reason := harness.Condition(obj, v1alpha1.ApprovedCondition); harness.HeldBy(obj) != w.Namespace+"/"+gates || status != "False" {
			return fmt.Errorf("held by %q, Approved is %q, %s", harness.HeldBy(obj), status, reason)
		}
		return nil
	})
}

// heldApps returns the Kustomization apps, which has applied revision v1 and is held by the Gate production. Revision v2 waits.
func (w *world) heldApps() *unstructured.Unstructured {
	w.Helper()
	apps := w.published()
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"})
	w.isHeldBy(apps, "production")
	w.publish("v2")
	return apps
}
