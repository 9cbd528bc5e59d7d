package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Patience is how long a World waits for an expected state. It is long, because other tests may use all cores.
const Patience = time.Minute

// World is a namespace on a control plane, with helpers for a test. If one of them fails, the test fails. Test packages embed it in their
// own types.
type World struct {
	testing.TB
	*ControlPlane
	Namespace string
}

// NewWorld creates a namespace for a test.
func NewWorld(t testing.TB, c *ControlPlane, change ...func(*corev1.Namespace)) *World {
	t.Helper()
	w := &World{TB: t, ControlPlane: c}
	w.Namespace = w.NewNamespace(change...)
	return w
}

// On returns the same world for a subtest.
func (w *World) On(t testing.TB) *World {
	return &World{TB: t, ControlPlane: w.ControlPlane, Namespace: w.Namespace}
}

// NewNamespace creates another namespace and returns its name.
func (w *World) NewNamespace(change ...func(*corev1.Namespace)) string {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "world-"}}
	for _, c := range change {
		c(namespace)
	}
	w.Must(w.Client.Create(w.Context(), namespace))
	return namespace.Name
}

// Must ends the test if there is an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Eventually calls check until it returns nil.
func (w *World) Eventually(what string, check func() error) {
	w.Helper()
	w.Must(Eventually(w.Context(), Patience, what, check))
}

// Throughout calls check repeatedly during an interval.
func (w *World) Throughout(length time.Duration, what string, check func() error) {
	w.Helper()
	w.Must(Throughout(w.Context(), length, what, check))
}

// Key returns the key of an object in the namespace.
func (w *World) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: name}
}

// Create creates an object, in the namespace unless it has another one.
func (w *World) Create(obj client.Object) {
	w.Helper()
	if obj.GetNamespace() == "" {
		obj.SetNamespace(w.Namespace)
	}
	w.Must(w.Client.Create(w.Context(), obj))
}

// Read reads an object again.
func (w *World) Read(obj client.Object) {
	w.Helper()
	w.Must(w.TryRead(obj))
}

// TryRead is like Read, but returns the error.
func (w *World) TryRead(obj client.Object) error {
	// Decoding into the existing object would keep removed keys of maps.
	value := reflect.ValueOf(obj).Elem()
	fresh, ok := reflect.New(value.Type()).Interface().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", obj)
	}
	fresh.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), fresh)
	if err == nil {
		value.Set(reflect.ValueOf(fresh).Elem())
	}
	return err
}

// Edit applies a change to an object and patches it.
func (w *World) Edit(obj client.Object, change func()) {
	w.Helper()
	before := w.copyOf(obj)
	change()
	w.Must(w.Client.Patch(w.Context(), obj, client.MergeFrom(before)))
}

// Rewrite reads an object and calls write to replace it. It repeats both if another client has written the object in between.
func (w *World) Rewrite(obj client.Object, write func() error) error {
	w.Helper()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		w.Read(obj)
		return write()
	})
}

func (w *World) copyOf(obj client.Object) client.Object {
	w.Helper()
	other, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		w.Fatalf("%T is not an object", obj)
	}
	return other
}

// Annotate sets annotations of an object, given as key and value, as kubectl annotate does. An empty value removes an annotation.
func (w *World) Annotate(obj client.Object, pairs ...string) {
	w.Helper()
	annotations := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		annotations[pairs[i]] = pairs[i+1]
		if pairs[i+1] == "" {
			annotations[pairs[i]] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	w.Must(err)
	w.Must(w.Client.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-annotate")))
}

// Merge sends a merge patch for an object.
func (w *World) Merge(obj client.Object, format string, args ...any) error {
	return w.Client.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...)))
}

// Flux sends a merge patch for an object as the flux CLI does. The given object does not change.
func (w *World) Flux(obj client.Object, patch string) error {
	w.Helper()
	return w.Client.Patch(w.Context(), w.copyOf(obj), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("flux"))
}

// Gate creates a Gate.
func (w *World) Gate(name string, spec v1alpha1.GateSpec) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	w.Create(g)
	return g
}

// ClosedGate creates a Gate that is closed by default.
func (w *World) ClosedGate(name string, targets ...v1alpha1.TargetReference) *v1alpha1.Gate {
	w.Helper()
	return w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: targets})
}

// ReadGate reads a Gate.
func (w *World) ReadGate(name string) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.Read(g)
	return g
}

// EditGate reads a Gate and changes it, as a user does.
func (w *World) EditGate(g *v1alpha1.Gate, change func(*v1alpha1.Gate)) {
	w.Helper()
	w.Read(g)
	w.Edit(g, func() { change(g) })
}

// Decided makes the controller decide on a Gate, and then reads the Gate.
func (w *World) Decided(g *v1alpha1.Gate) {
	w.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	// This does not use the field manager of kubectl, because Flux removes its annotations.
	w.Must(w.Merge(g, `{"metadata":{"annotations":{%q:%q}}}`, fluxmeta.ReconcileRequestAnnotation, token))
	w.Eventually("the controller decides on "+g.Name, func() error {
		if w.Read(g); g.Status.LastHandledReconcileAt != token {
			return fmt.Errorf("it handled %q", g.Status.LastHandledReconcileAt)
		}
		return nil
	})
}

// Opened waits until the condition Opened of a Gate has the wanted status, and returns the Gate.
func (w *World) Opened(name string, want metav1.ConditionStatus) *v1alpha1.Gate {
	w.Helper()
	var g *v1alpha1.Gate
	w.Eventually(fmt.Sprintf("Opened of %s is %s", name, want), func() error {
		g = &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
		if err := w.TryRead(g); err != nil {
			return err
		}
		if !meta.IsStatusConditionPresentAndEqual(g.Status.Conditions, v1alpha1.OpenedCondition, want) {
			return fmt.Errorf("conditions are %v", g.Status.Conditions)
		}
		return nil
	})
	return g
}

// Kustomization returns a Kustomization whose source does not exist, so that only the gating-controller writes it.
func (w *World) Kustomization(name string) *unstructured.Unstructured {
	obj := Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key(name))
	obj.Object["spec"] = map[string]any{"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"}}
	return obj
}

// ShowLogs prints the ends of the logs of processes if the test fails.
func (w *World) ShowLogs(processes func() []*Process) {
	w.Cleanup(func() {
		if !w.Failed() {
			return
		}
		for _, p := range processes() {
			log, err := os.ReadFile(p.Log)
			w.Logf("log of %s (%v):\n%s", p.name, err, log[max(0, len(log)-8000):])
		}
	})
}

// Suspended returns spec.suspend of an object.
func Suspended(obj *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	return value
}

// HeldBy returns the Gates in the annotation of an object that is held by them.
func HeldBy(obj client.Object) string { return obj.GetAnnotations()[v1alpha1.HeldByAnnotation] }
