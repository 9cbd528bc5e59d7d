package kinds

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	namespaced = "Namespaced"
	// conditions is a schema of a status that accepts the controller's conditions.
	conditions = `{type: object, properties: {conditions: {type: array, items: {type: object, required: [type, status], properties: {
          type: {type: string}, status: {type: string}, reason: {type: string}, message: {type: string}, lastTransitionTime: {type: string, format: date-time}}}}}}`
	bare = "{type: object}"
	// boolean is the schema of a spec with a boolean field that suspends the object.
	boolean = "{type: object, properties: {size: {type: integer}, suspend: {type: boolean}, paused: {type: boolean}}}"
)

// define creates the definition of a kind.
func (w *world) define(kind, plural, scope, spec, status string) {
	w.Helper()
	w.Must(apply(w.Context(), fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.example.org}
spec:
  group: example.org
  names: {kind: %[1]s, plural: %[2]s}
  scope: %[3]s
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: %[4]s
          status: %[5]s
`, kind, plural, scope, spec, status)))
}

// create creates an object as soon as its kind is served.
func (w *world) create(obj *unstructured.Unstructured) {
	w.Helper()
	w.Eventually("the kind "+obj.GetKind()+" is served", func() error { return w.Client.Create(w.Context(), obj) })
}

// gateOn returns a closed Gate with all objects of a kind of example.org.
func (w *world) gateOn(kind string) *v1alpha1.Gate {
	w.Helper()
	return w.ClosedGate("production", v1alpha1.TargetReference{APIVersion: "example.org/v1", Kind: kind, Name: v1alpha1.AnyName})
}

func TestKindWithoutBooleanFieldIsOneFailure(t *testing.T) {
	t.Parallel()
	const another = ": name the field that suspends it, as in --suspend-kinds="
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "guides", "more-kinds.md"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, tc := range map[string]struct{ plural, scope, spec, message string }{
		"Bare":   {"bares", namespaced, "{type: object, properties: {size: {type: integer}}}", "kind Bare of example.org has no boolean field spec.suspend" + another + "example.org/Bare=spec.paused"},
		"Text":   {"texts", namespaced, "{type: object, properties: {suspend: {type: string}}}", "spec.suspend of kind Text of example.org has type string, but must be a boolean field" + another + "example.org/Text=spec.paused"},
		"Open":   {"opens", namespaced, "{type: object, x-kubernetes-preserve-unknown-fields: true}", "the schema of kind Open of example.org does not declare spec.suspend: gates need a declared boolean field"},
		"Global": {"globals", "Cluster", boolean, "kind Global of example.org is not namespaced: gates hold only namespaced objects"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if !strings.Contains(string(page), strings.ReplaceAll(tc.message, kind, "Widget")) {
				t.Errorf("docs/guides/more-kinds.md lacks the message %q", tc.message)
			}
			w.define(kind, tc.plural, tc.scope, tc.spec, conditions)
			obj := w.object("example.org/v1", kind, "one", "size: 3")
			if tc.scope != namespaced {
				obj.SetNamespace("")
				obj.SetName(w.Namespace)
				w.Eventually("the kind is served", func() error { return w.Client.Create(w.Context(), obj) })
			} else {
				w.create(obj)
			}
			version := obj.GetResourceVersion()
			g := w.gateOn(kind)
			w.fails(g, v1alpha1.UnsupportedKindReason, tc.message)
			w.Decided(g)
			if w.Read(obj); obj.GetResourceVersion() != version {
				t.Errorf("the object was written: %v", obj.Object)
			}
			if !meta.IsStatusConditionFalse(g.Status.Conditions, "Ready") {
				t.Errorf("the gate is ready: %+v", g.Status.Conditions)
			}
		})
	}
	t.Run("a built-in kind", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.fails(w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Job", Name: "one"}), v1alpha1.UnsupportedKindReason,
			"spec.completionMode of kind Job of batch has type string, but must be a boolean field"+another+"batch/Job=spec.paused")
	})
}

func TestUnsupportedKindIsOneFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fails(w.ClosedGate("production", v1alpha1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}), v1alpha1.UnsupportedKindReason,
		"kind StatefulSet of apps/v1 is not supported: if a boolean field suspends its objects, start the controller with --suspend-kinds=apps/StatefulSet")
}

func TestMissingKindIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fails(w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Absent", Name: "one"}), v1alpha1.CRDNotFoundReason, "kind Absent.other.example.org is not installed")
}

// When the definition changes, the Gate recovers without a restart, and reports a failure once it can no longer hold the objects.
func TestKindIsHeldOnceFieldExists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	without := "{type: object, properties: {size: {type: integer}}}"
	w.define("Later", "laters", namespaced, without, conditions)
	obj := w.object("example.org/v1", "Later", "one", "size: 3")
	w.create(obj)
	g := w.gateOn("Later")
	message := "kind Later of example.org has no boolean field spec.suspend: name the field that suspends it, as in --suspend-kinds=example.org/Later=spec.paused"
	w.fails(g, v1alpha1.UnsupportedKindReason, message)
	w.define("Later", "laters", namespaced, boolean, conditions)
	w.field(obj, "suspend", true)
	w.Eventually("the gate is ready", func() error {
		if w.Read(g); len(g.Status.TargetFailures()) > 0 || g.Status.Targets.Held != 1 {
			return fmt.Errorf("%+v", g.Status)
		}
		return nil
	})
	w.define("Later", "laters", namespaced, without, conditions)
	w.fails(g, v1alpha1.UnsupportedKindReason, message)
}

func TestKindWithConditionsGetsCondition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define("Widget", "widgets", namespaced, boolean, conditions)
	obj := w.object("example.org/v1", "Widget", "one", "size: 3")
	w.create(obj)
	g := w.gateOn("Widget")
	w.field(obj, "suspend", true)
	approved := func(want metav1.ConditionStatus) {
		t.Helper()
		w.Eventually("the condition Approved is updated", func() error {
			w.Read(obj)
			if status, reason := harness.Condition(obj, v1alpha1.ApprovedCondition); status != want {
				return fmt.Errorf("Approved is %q, %s", status, reason)
			}
			return nil
		})
	}
	approved(metav1.ConditionFalse)
	version := obj.GetResourceVersion()
	w.Decided(g)
	if w.Read(obj); obj.GetResourceVersion() != version {
		t.Errorf("the object was written again: %v", obj.Object)
	}
	w.open(g)
	w.field(obj, "suspend", false)
	approved(metav1.ConditionTrue)
}

// The definition is created after the Gate, and its plural cannot be guessed.
func TestKindWithOtherFieldAndPluralWithoutConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.gateOn("Gizmo")
	w.fails(g, v1alpha1.CRDNotFoundReason, "kind Gizmo.example.org is not installed")
	w.define("Gizmo", "gizmodos", namespaced, boolean, bare)
	w.Must(apply(w.Context(), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gizmodos}
rules: [{apiGroups: [example.org], resources: [gizmodos], verbs: [get, list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gizmodos}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gizmodos}
subjects: [{kind: ServiceAccount, name: gating-controller, namespace: gating-system}]
`))
	obj := w.object("example.org/v1", "Gizmo", "one", "{size: 3, suspend: true}")
	w.create(obj)
	w.field(obj, "paused", true)
	version := obj.GetResourceVersion()
	w.Decided(g)
	if w.Read(obj); obj.GetResourceVersion() != version || obj.Object["status"] != nil {
		t.Errorf("the object was written again: %v", obj.Object)
	}
	w.open(g)
	w.field(obj, "paused", false)
	if !harness.Suspended(obj) {
		t.Error("another field was changed")
	}
	_, err := w.Kubectl(w.Context(), "delete", "crd", "gizmodos.example.org")
	w.Must(err)
	w.fails(g, v1alpha1.CRDNotFoundReason, "kind Gizmo.example.org is not installed")
}

// canaryModule is the Go module with the definition of Canaries, and canarySum is its checksum.
const canaryModule, canarySum = "github.com/fluxcd/flagger@v1.36.1", "h1:X2PumtNwZz9YSGaOtZLFm2zAKLgHhFkbNv8beg7ifyc="

// canaries returns the path of Flagger's definition. It skips the test if the Go module cannot be downloaded.
func canaries(t *testing.T) string {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", canaryModule)
	download.Dir, download.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := download.Output()
	var module struct{ Dir, Sum string }
	if json.Unmarshal(out, &module) != nil || err != nil || module.Dir == "" {
		t.Skipf("cannot download the Go module %s: %v: %s", canaryModule, err, out)
	}
	if module.Sum != canarySum {
		t.Fatalf("the checksum of %s differs: %s", canaryModule, module.Sum)
	}
	return filepath.Join(module.Dir, "artifacts", "flagger", "crd.yaml")
}

func TestFlaggerCanaryIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Kubectl(w.Context(), "apply", "--server-side", "-f", canaries(t))
	w.Must(err)
	canary := w.object("flagger.app/v1beta1", "Canary", "web", `
targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
service: {port: 80}
analysis: {interval: 1m, threshold: 5, iterations: 10}
`)
	w.create(canary)
	g := w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Canary", Name: "web"})
	w.field(canary, "suspend", true)
	w.Eventually("the condition Approved is updated", func() error {
		w.Read(canary)
		if status, reason := harness.Condition(canary, v1alpha1.ApprovedCondition); status != metav1.ConditionFalse {
			return fmt.Errorf("Approved is %q, %s: %v", status, reason, canary.Object["status"])
		}
		return nil
	})
	version := canary.GetResourceVersion()
	w.Decided(g)
	if w.Read(canary); canary.GetResourceVersion() != version {
		t.Errorf("the status was written again: %v", canary.Object["status"])
	}
	w.open(g)
	w.field(canary, "suspend", false)
}
