package lock

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// initially returns the lock of a closed Gate that governs all objects of some kinds and allows their initial reconciliation.
func (w *world) initially(kinds ...string) lockv1alpha1.GateLockSpec {
	gate := w.gate("production")
	spec := lockv1alpha1.GateLockSpec{Gates: map[string]bool{gate: true}, Initial: map[string]bool{gate: true}, Targets: map[string][]string{}}
	for _, kind := range kinds {
		spec.Targets[kind+"/app"] = []string{gate}
	}
	return spec
}

// report merges a status into an object, as its Flux controller does.
func (w *world) report(obj *unstructured.Unstructured, status string) {
	w.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
	w.Must(w.Client.Status().Patch(w.Context(), obj.DeepCopy(), patch, client.FieldOwner("flux")))
}

// A write after the first success is locked, so the policy and the adapters must read the same fields. The last case of each kind is the
// first success.
func TestLockAllowsInitialReconciliationOfEachKind(t *testing.T) {
	w := newWorld(t)
	source := func(kind string) *unstructured.Unstructured {
		return harness.Object("source.toolkit.fluxcd.io/v1", kind, w.Key("app"))
	}
	image := func(kind string) *unstructured.Unstructured {
		return harness.Object("image.toolkit.fluxcd.io/v1", kind, w.Key("app"))
	}
	const artifact = `{"artifact":{"digest":"sha256:00","lastUpdateTime":"2026-01-01T00:00:00Z","path":"p","revision":"main@1","url":"http://a"}}`
	attempted := `{"observedGeneration":1}`
	release := func(status string) string {
		return `{"history":[{"name":"a","namespace":"a","version":1,"status":"` + status + `","chartName":"a","chartVersion":"1.0.0",
			"configDigest":"sha256:0","digest":"sha256:0","firstDeployed":"2026-01-01T00:00:00Z","lastDeployed":"2026-01-01T00:00:00Z"}]}`
	}
	cases := map[string]struct {
		obj      *unstructured.Unstructured
		spec     string
		statuses []string
	}{
		"Kustomization": {w.inGit("app"), "", []string{`{"lastAttemptedRevision":"main@1"}`, `{"lastAppliedRevision":"main@1"}`}},
		"HelmRelease": {
			harness.Object("helm.toolkit.fluxcd.io/v2", "HelmRelease", w.Key("app")), `{"interval":"1h","chartRef":{"kind":"OCIRepository","name":"app"}}`,
			[]string{release("pending-install"), release("failed"), release("uninstalled"), release("superseded")},
		},
		"GitRepository":  {source("GitRepository"), `{"interval":"1h","url":"https://a"}`, []string{attempted, artifact}},
		"OCIRepository":  {source("OCIRepository"), `{"interval":"1h","url":"oci://a"}`, []string{attempted, artifact}},
		"Bucket":         {source("Bucket"), `{"interval":"1h","bucketName":"a","endpoint":"a"}`, []string{attempted, artifact}},
		"HelmChart":      {source("HelmChart"), `{"interval":"1h","chart":"a","sourceRef":{"kind":"HelmRepository","name":"a"}}`, []string{attempted, artifact}},
		"HelmRepository": {source("HelmRepository"), `{"interval":"1h","url":"https://a"}`, []string{attempted, artifact}},
		"ImageRepository": {
			image("ImageRepository"), `{"interval":"1h","image":"a"}`, []string{attempted, `{"lastScanResult":{"tagCount":0}}`},
		},
		"ImagePolicy": {
			image("ImagePolicy"), `{"imageRepositoryRef":{"name":"a"},"policy":{"alphabetical":{}}}`, []string{attempted, `{"latestRef":{"name":"a","tag":"1"}}`},
		},
		"ImageUpdateAutomation": {
			image("ImageUpdateAutomation"), `{"interval":"1h","sourceRef":{"kind":"GitRepository","name":"a"}}`,
			[]string{attempted, `{"lastAutomationRunTime":"2026-01-01T00:00:00Z"}`},
		},
	}
	for _, adapter := range target.All() {
		_, tested := cases[adapter.GroupKind().Kind]
		if _, installs := adapter.(target.Installer); tested != (installs && target.Suspends(adapter)) {
			t.Errorf("%s: tested: %t", adapter.GroupKind().Kind, tested)
		}
	}
	var kinds []string
	for kind := range cases {
		kinds = append(kinds, kind)
	}
	w.lock(w.initially(kinds...))
	for kind, tc := range cases {
		t.Run(kind, func(t *testing.T) {
			w := &world{World: w.On(t), controller: w.controller}
			if tc.spec != "" {
				tc.obj.Object["spec"] = mapOf(t, tc.spec)
			}
			w.apply(tc.obj)
			w.expectFree(tc.obj)
			for i, status := range tc.statuses {
				w.report(tc.obj, status)
				w.Must(w.Flux(tc.obj, fmt.Sprintf(`{"metadata":{"labels":{"write":"%d"}}}`, i)))
				last := i == len(tc.statuses)-1
				live := w.read(tc.obj.DeepCopy())
				if harness.Suspended(live) != last {
					t.Errorf("suspended %t with status %s", !last, status)
				}
				trimmed := &target.Object{Unstructured: *live}
				if target.IsInitial(trimmed) == last {
					t.Errorf("the adapter considers status %s a success: %t", status, !last)
				}
			}
		})
	}
}

func mapOf(t *testing.T, text string) map[string]any {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"A","spec":` + text + `}`)); err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(obj.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestLockHoldsNewObjectsWithUnknownSuccess(t *testing.T) {
	w := newWorld(t)
	w.lock(w.initially("HelmRepository"))
	obj := harness.Object("source.toolkit.fluxcd.io/v1", "HelmRepository", w.Key("app"))
	obj.Object["spec"] = map[string]any{"interval": "1h", "url": "oci://a", "type": "oci"}
	w.apply(obj)
	w.expectHeld(obj, w.gate("production"))
}

func TestLockHoldsNewObjectForGatesThatDoNotAllowIt(t *testing.T) {
	w := newWorld(t)
	spec := w.initially("Kustomization")
	spec.Gates["ops/freeze"] = true
	spec.Targets["Kustomization/app"] = append(spec.Targets["Kustomization/app"], "ops/freeze")
	w.lock(spec)
	app := w.inGit("app")
	w.apply(app)
	w.expectHeld(app, "ops/freeze")
}

// The policy has no clock, so the age of an object is that of its latest change.
func TestLockHoldsObjectsOlderThanAnHour(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		held bool
	}{"just before": {time.Hour - time.Minute, false}, "an hour later": {time.Hour, true}, "without managed fields": {0, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lock(w.initially("Kustomization"))
			app := w.inGit("app")
			w.apply(app)
			w.expectFree(app)
			live := w.read(app.DeepCopy())
			entries := live.GetManagedFields()
			entries[0].Time = &metav1.Time{Time: live.GetCreationTimestamp().Add(tc.age)}
			if tc.age == 0 {
				entries = []metav1.ManagedFieldsEntry{{}}
			}
			live.SetManagedFields(entries)
			live.SetLabels(map[string]string{"touched": "true"})
			w.Must(w.Client.Update(w.Context(), live, client.FieldOwner("kubectl-replace")))
			if got := harness.Suspended(w.read(app.DeepCopy())); got != tc.held {
				t.Errorf("held: %t, want %t", got, tc.held)
			}
		})
	}
}

func TestHeldNewObjectCanBeResumedOnceGateAllowsIt(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.inGit("app")
	w.apply(app)
	w.expectHeld(app, w.gate("production"))
	w.lock(w.initially("Kustomization"))
	w.resume(app)
	if harness.Suspended(w.read(app)) {
		t.Error("the lock keeps an object suspended although its gate allows the initial reconciliation")
	}
}
