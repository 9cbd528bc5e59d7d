package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// git commits spec.suspend of app and no other change, and waits until Flux has tried to apply it.
func (w *fleet) git(suspend string) {
	w.Helper()
	w.step(fmt.Sprintf("commit suspend %q to Git", suspend), true, func() {
		w.model.git = suspend
		w.published(w.publishFleet())
	})
}

// gitWithMore commits another change of app together with spec.suspend.
func (w *fleet) gitWithMore(suspend string) {
	w.Helper()
	w.step(fmt.Sprintf("commit suspend %q and another change to Git", suspend), true, func() {
		w.model.git = suspend
		w.note++
		w.committed = true
		w.published(w.publishFleet())
	})
}

// gitFails commits a change that Flux fails to apply.
func (w *fleet) gitFails(because string) {
	w.Helper()
	w.step("commit a change that Flux fails to apply", false, func() {
		w.note++
		w.committed = true
		w.publishFleet()
		w.Eventually("fleet fails", w.fleetReports(because))
	})
}

// fluxWritesOwners removes a manager whose name begins with kubectl as Flux does: it writes all managed fields in the state in which it
// read app.
func (w *fleet) fluxWritesOwners(owners []metav1.ManagedFieldsEntry) {
	w.Helper()
	w.step("Flux writes old owners", false, func() {
		patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": owners}})
		w.Must(err)
		w.Must(w.Client.Patch(w.Context(), w.app(), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(inGit)))
	})
}

// firstApplied creates fleet, so that Flux creates app.
func (w *fleet) firstApplied() {
	w.Helper()
	w.step("fleet is created", false, func() {
		w.createFleet()
		w.published(fmt.Sprintf("commit-%d", w.commit))
	})
}

func (w *fleet) createFleet() {
	w.Helper()
	parent := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("fleet"))
	spec := map[string]any{
		"interval": "1h", "prune": true, "path": "./",
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "fleet"},
	}
	if w.ignore {
		spec["ignore"] = []any{map[string]any{"paths": []any{"/spec/suspend"}}}
	}
	parent.Object["spec"] = spec
	w.Create(parent)
}

// published waits until Flux has applied a revision without a request.
func (w *fleet) published(revision string) {
	w.Helper()
	w.Eventually("fleet applies "+revision, func() error {
		parent, err := w.parent()
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(parent.Object, "status", "lastAppliedRevision"); got != revision {
			return fmt.Errorf("fleet applied %q", got)
		}
		return nil
	})
	w.flux()
}

// parentReconciles reconciles the parent, as flux reconcile or the interval does.
func (w *fleet) parentReconciles() {
	w.Helper()
	w.step("fleet reconciles", true, func() {
		w.reconcileFleet()
		w.flux()
	})
}

func (w *fleet) reconcileFleet() {
	w.Helper()
	token := w.reconcileNow(harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("fleet")))
	w.Eventually("fleet reconciles", func() error {
		parent, err := w.parent()
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(parent.Object, "status", "lastHandledReconcileAt"); got != token {
			return fmt.Errorf("fleet handled %q", got)
		}
		return nil
	})
}

// fleetReports returns an error unless the conditions of fleet contain a text.
func (w *fleet) fleetReports(text string) func() error {
	return func() error {
		parent, err := w.parent()
		if err != nil {
			return err
		}
		list, _, _ := unstructured.NestedSlice(parent.Object, "status", "conditions")
		if status := fmt.Sprint(list); !strings.Contains(status, text) {
			return fmt.Errorf("conditions are %s", status)
		}
		return nil
	}
}

func (w *fleet) parent() (*unstructured.Unstructured, error) {
	parent := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("fleet"))
	return parent, w.Client.Get(w.Context(), w.Key("fleet"), parent)
}

// publishFleet publishes app, as it is in Git, as the next revision of fleet.
func (w *fleet) publishFleet() string {
	w.Helper()
	w.commit++
	annotations := fmt.Sprintf("    example.com/note: %q\n", fmt.Sprint(w.note))
	if w.ifNotPresent {
		annotations += "    kustomize.toolkit.fluxcd.io/ssa: IfNotPresent\n"
	}
	if w.names {
		annotations += "    " + v1alpha1.GatesAnnotation + ": production\n"
	}
	suspend := ""
	if w.model.git != "" {
		suspend = "  suspend: " + w.model.git + "\n"
	}
	revision := fmt.Sprintf("commit-%d", w.commit)
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("fleet"), revision, map[string]string{"app.yaml": fmt.Sprintf(
		"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: app\n  namespace: %s\n  annotations:\n%s"+
			"spec:\n  interval: 1h\n  prune: true\n  path: ./\n  sourceRef:\n    kind: ExternalArtifact\n    name: app\n%s",
		w.Namespace, annotations, suspend)}))
	return revision
}

// push publishes the next revision of the content that app applies.
func (w *fleet) push() {
	w.Helper()
	w.revision++
	w.publish(fmt.Sprintf("v%d", w.revision))
}

// fluxSuspend and fluxResume are the exact patches of the flux CLI.
func (w *fleet) fluxSuspend() { w.Helper(); w.patch("flux suspend", "flux", "true") }

func (w *fleet) fluxResume() { w.Helper(); w.patch("flux resume", "flux", "") }

func (w *fleet) patch(what, manager, value string) {
	w.Helper()
	w.step(what, value != "true", func() {
		w.Must(w.Client.Patch(w.Context(), w.app(), client.RawPatch(types.MergePatchType, suspendPatch(value)), client.FieldOwner(manager)))
		w.update(manager, value)
	})
}

// suspendPatch is a merge patch of spec.suspend.
func suspendPatch(value string) []byte {
	if value == "" {
		value = "null"
	}
	return []byte(`{"spec":{"suspend":` + value + `}}`)
}

func (w *fleet) kubectlPatch(value string) {
	w.Helper()
	w.step("kubectl patch "+value, value != "true", func() {
		_, err := cluster.Kubectl(w.Context(), "--namespace", w.Namespace, "patch", "kustomization", "app", "--type=merge",
			"--patch", string(suspendPatch(value)))
		w.Must(err)
		w.update("kubectl-patch", value)
	})
}

// kubectlEdit sets or removes the field as a user with kubectl edit does.
func (w *fleet) kubectlEdit(value string) {
	w.Helper()
	w.step("kubectl edit "+value, value != "true", func() {
		script := `/^  suspend:/d`
		if value != "" {
			script += `;s/^spec:$/spec:\n  suspend: ` + value + `/`
		}
		edit := exec.CommandContext(w.Context(), filepath.Join(harness.Tools(), "bin", "kubectl"), "--namespace", w.Namespace, "edit", "kustomization", "app")
		edit.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "KUBE_EDITOR=sed -i '"+script+"'")
		if out, err := edit.CombinedOutput(); err != nil {
			w.Fatalf("kubectl edit: %v: %s", err, out)
		}
		w.update("kubectl-edit", value)
	})
}

// applyAs applies spec.suspend: true as kubectl apply --server-side with another field manager.
func (w *fleet) applyAs(manager string) {
	w.Helper()
	w.step(manager+" applies suspend: true", false, func() {
		file := filepath.Join(w.TempDir(), "app.yaml")
		w.Must(os.WriteFile(file, []byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"+
			"metadata:\n  name: app\n  namespace: "+w.Namespace+"\nspec:\n  suspend: true\n"), 0o600))
		_, err := cluster.Kubectl(w.Context(), "apply", "--server-side", "--field-manager="+manager, "-f", file)
		w.Must(err)
		w.apply(manager, "true")
	})
}

// newGate creates an open Gate for app.
func (w *fleet) newGate(name string) {
	w.Helper()
	policy := v1alpha1.ModeEnforce
	if w.respect {
		policy = v1alpha1.ModeLenient
	}
	spec := v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Mode: policy}
	if !w.names {
		spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "app"}}
	}
	if w.gateSpec != nil {
		w.gateSpec(&spec)
	}
	w.Gate(name, spec)
}

// close and open are requests by annotation.
func (w *fleet) close(name string) {
	w.Helper()
	w.step(name+" closes", false, func() {
		w.makeRequest(name, v1alpha1.CloseRequestedAtAnnotation, metav1.ConditionFalse)
		w.model.close(w.Namespace + "/" + name)
	})
}

func (w *fleet) open(name string) {
	w.Helper()
	w.step(name+" opens", false, func() {
		w.makeRequest(name, v1alpha1.OpenRequestedAtAnnotation, metav1.ConditionTrue)
		w.model.open(w.Namespace + "/" + name)
	})
}

func (w *fleet) makeRequest(name, annotation string, want metav1.ConditionStatus) {
	w.Helper()
	w.Annotate(&v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}, annotation, time.Now().UTC().Format(time.RFC3339Nano))
	if !w.down {
		w.Opened(name, want)
	}
}

// deleteGate deletes a Gate. If the controller is running, it waits until the Gate does not exist.
func (w *fleet) deleteGate(name string) {
	w.Helper()
	w.step(name+" is deleted", false, func() {
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
		w.Must(w.Client.Delete(w.Context(), g))
		if !w.down {
			w.isGone(g)
		}
		w.model.open(w.Namespace + "/" + name)
		if w.names { // a missing Gate holds
			w.model.close(w.Namespace + "/" + name)
		}
	})
}

// recreateGate creates a deleted Gate again, as an open one.
func (w *fleet) recreateGate(name string) {
	w.Helper()
	w.step(name+" is created again", false, func() {
		w.newGate(name)
		w.Opened(name, metav1.ConditionTrue)
		w.model.open(w.Namespace + "/" + name)
	})
}

// deleteApp deletes the target, unless the lock refuses that. Flux prunes nothing if the target is suspended.
func (w *fleet) deleteApp() {
	w.Helper()
	w.step("app is deleted", true, func() {
		app := w.app()
		err := w.Client.Delete(w.Context(), app)
		if w.withLock && (slices.Contains(w.owners, us) || w.byTheLock()) {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is held by gate '"+w.Namespace+"/") {
				w.Errorf("a held target can be deleted: %v", err)
			}
			return
		}
		w.Must(err)
		w.isGone(app)
		w.vanish()
	})
}

func (w *fleet) isGone(obj client.Object) {
	w.Helper()
	w.Eventually(obj.GetName()+" is deleted", func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it exists: %w", err)
	})
}

// reported waits until no reconciliation of app is in progress: Flux has finished what it began before app was held again.
func (w *fleet) reported() {
	w.Helper()
	w.Eventually("app is ready", func() error {
		list := (&target.Object{Unstructured: *w.live()}).GetConditions()
		if !meta.IsStatusConditionTrue(list, fluxmeta.ReadyCondition) || meta.IsStatusConditionTrue(list, fluxmeta.ReconcilingCondition) {
			return fmt.Errorf("conditions %+v", list)
		}
		return nil
	})
}

// warned checks the number of warnings that app was held again.
func (w *fleet) warned(times int) {
	w.Helper()
	w.Eventually("the warnings are emitted", func() error {
		events := &corev1.EventList{}
		if err := w.Client.List(w.Context(), events, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		got := 0
		for _, event := range events.Items {
			if event.Reason == v1alpha1.HeldAgainReason && event.InvolvedObject.Name == "app" && event.Type == corev1.EventTypeWarning {
				got += max(1, int(event.Count))
			}
		}
		if got != times {
			return fmt.Errorf("%d, want %d", got, times)
		}
		return nil
	})
}

// removeFinalizer removes the finalizer of a Gate.
func (w *fleet) removeFinalizer(gate string) {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: gate}}
	w.merge(g, "kubectl-patch", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	w.isGone(g)
}
