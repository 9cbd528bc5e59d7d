// Package lock tests the admission policies of config/lock on a real API server, without a controller.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// controllerName is the user name of the controller in the policies.
	controllerName = "system:serviceaccount:" + harness.RuntimeNamespace + ":gating-controller"

	suspendedBy = "gating.toolkit.fluxcd.io/suspendedBy"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (func() error, error) {
	return nil, cluster.InstallComponent(ctx, "lock")
}

// world is a namespace with a GateLock.
type world struct {
	*harness.World
	// controller is a client that the policies treat as the controller.
	controller client.Client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	// Names of Gates are sorted, and ops sorts after this namespace.
	w := harness.NewWorld(t, cluster, func(n *corev1.Namespace) { n.GenerateName = "lock-" })
	return &world{World: w, controller: w.Person(controllerName, "system:masters").Client}
}

// lock writes the GateLock of the namespace and waits until the policy considers it: the API server reads it from its own watch.
func (w *world) lock(spec lockv1alpha1.GateLockSpec) {
	w.Helper()
	obj := &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: lockv1alpha1.GateLockName}}
	err := w.controller.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
	w.Must(client.IgnoreNotFound(err))
	marker := fmt.Sprintf("probe-%d", time.Now().UnixNano())
	spec.Targets = merged(spec.Targets, "Kustomization/"+marker, w.Namespace+"/"+marker)
	obj.Spec = spec
	if err != nil {
		w.Must(w.controller.Create(w.Context(), obj))
	} else {
		w.Must(w.controller.Update(w.Context(), obj))
	}
	w.Eventually("the lock is in force", func() error {
		probe := w.inGit(marker)
		if err := w.Client.Create(w.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if !strings.Contains(harness.HeldBy(probe), w.Namespace+"/"+marker) {
			return errors.New("the probe is not held")
		}
		return nil
	})
}

func merged(targets map[string][]string, key, gate string) map[string][]string {
	all := map[string][]string{key: {gate}}
	for key, gates := range targets {
		all[key] = gates
	}
	return all
}

// gate returns the name of a Gate in this namespace.
func (w *world) gate(name string) string { return w.Namespace + "/" + name }

// locked returns the lock of a closed Gate that governs the Kustomization app.
func (w *world) locked() lockv1alpha1.GateLockSpec {
	gate := w.gate("production")
	return lockv1alpha1.GateLockSpec{Gates: map[string]bool{gate: true}, Targets: map[string][]string{"Kustomization/app": {gate}}}
}

// unlocked returns the lock of the same Gate when it is open.
func (w *world) unlocked() lockv1alpha1.GateLockSpec {
	return lockv1alpha1.GateLockSpec{Gates: map[string]bool{w.gate("production"): false}}
}

// inGit returns a Kustomization as in Git.
func (w *world) inGit(name string, suspend ...string) *unstructured.Unstructured {
	obj := w.Kustomization(name)
	for _, s := range suspend {
		w.Must(unstructured.SetNestedField(obj.Object, s == "true", "spec", "suspend"))
	}
	return obj
}

// apply acts like kustomize-controller.
func (w *world) apply(obj *unstructured.Unstructured, opts ...client.ApplyOption) *unstructured.Unstructured {
	w.Helper()
	config := obj.DeepCopy()
	w.Must(w.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(config),
		append(opts, client.FieldOwner("kustomize-controller"), client.ForceOwnership)...))
	return config
}

func (w *world) resume(obj *unstructured.Unstructured) {
	w.Helper()
	w.Must(w.Flux(obj, `{"spec":{"suspend":null}}`))
}

func (w *world) suspend(obj *unstructured.Unstructured) {
	w.Helper()
	w.Must(w.Flux(obj, `{"spec":{"suspend":true}}`))
}

func (w *world) read(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	w.Read(obj)
	return obj
}

// expectHeld checks that only the lock suspends an object, in the name of gates.
func (w *world) expectHeld(obj *unstructured.Unstructured, by string) {
	w.Helper()
	w.read(obj)
	if !harness.Suspended(obj) || harness.HeldBy(obj) != by || len(owners(obj)) > 0 {
		w.Errorf("suspended %t, held by %q, owned by %q; want held by %q", harness.Suspended(obj), harness.HeldBy(obj), owners(obj), by)
	}
}

// expectFree checks that no Gate holds an object.
func (w *world) expectFree(obj *unstructured.Unstructured) {
	w.Helper()
	w.read(obj)
	if harness.Suspended(obj) || harness.HeldBy(obj) != "" {
		w.Errorf("suspended %t, held by %q", harness.Suspended(obj), harness.HeldBy(obj))
	}
}

// owners returns the field managers that own spec.suspend.
func owners(obj *unstructured.Unstructured) []string {
	var names []string
	for _, entry := range obj.GetManagedFields() {
		fields := &unstructured.Unstructured{}
		if err := fields.UnmarshalJSON([]byte(`{"apiVersion":"a/v1","kind":"A","f":` + entry.FieldsV1.GetRawString() + `}`)); err != nil {
			panic(err)
		}
		if _, ok, _ := unstructured.NestedMap(fields.Object, "f", "f:spec", "f:suspend"); ok {
			names = append(names, entry.Manager)
		}
	}
	return names
}
