// Package lock tests the admission policies of config/lock on a real API server,
// while no controller runs.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// timeout for what must happen; two cores may be busy.
	timeout = time.Minute

	// controllerName is the user name of the controller, which the policies know.
	controllerName = "system:serviceaccount:" + harness.RuntimeNamespace + ":gating-controller"

	suspendedBy = "gating.toolkit.fluxcd.io/suspended-by"
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
	testing.TB
	ctx       context.Context
	namespace string
	// controller is a client that the policies take for the controller.
	controller client.Client
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lock-"}}
	w.must(cluster.Client.Create(w.ctx, namespace))
	w.namespace = namespace.Name
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: controllerName, Groups: []string{"system:masters"}}
	var err error
	w.controller, err = client.New(config, client.Options{Scheme: cluster.Client.Scheme()})
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// lock writes the GateLock of the namespace and waits until the policy knows it:
// the API server reads it from a watch of its own.
func (w *world) lock(spec v1alpha1.GateLockSpec) {
	w.Helper()
	obj := &v1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: v1alpha1.GateLockName}}
	err := w.controller.Get(w.ctx, client.ObjectKeyFromObject(obj), obj)
	w.must(client.IgnoreNotFound(err))
	marker := fmt.Sprintf("probe-%d", time.Now().UnixNano())
	spec.Targets = merged(spec.Targets, "Kustomization/"+marker, w.namespace+"/"+marker)
	obj.Spec = spec
	if err != nil {
		w.must(w.controller.Create(w.ctx, obj))
	} else {
		w.must(w.controller.Update(w.ctx, obj))
	}
	w.must(harness.Eventually(w.ctx, timeout, "the policy knows the lock", func() error {
		probe := w.inGit(marker)
		if err := cluster.Client.Create(w.ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if heldBy(probe) != w.namespace+"/"+marker {
			return errors.New("the probe is not held")
		}
		return nil
	}))
}

func merged(targets map[string][]string, key, gate string) map[string][]string {
	all := map[string][]string{key: {gate}}
	for key, gates := range targets {
		all[key] = gates
	}
	return all
}

// gate is a name of a Gate in this namespace.
func (w *world) gate(name string) string { return w.namespace + "/" + name }

// locked is the lock of a Gate that is closed and governs the Kustomization app.
func (w *world) locked() v1alpha1.GateLockSpec {
	gate := w.gate("production")
	return v1alpha1.GateLockSpec{Gates: map[string]bool{gate: true}, Targets: map[string][]string{"Kustomization/app": {gate}}}
}

// unlocked is the same Gate when it is open.
func (w *world) unlocked() v1alpha1.GateLockSpec {
	return v1alpha1.GateLockSpec{Gates: map[string]bool{w.gate("production"): false}}
}

// inGit is a Kustomization as it is in Git.
func (w *world) inGit(name string, spec ...string) *unstructured.Unstructured {
	obj := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", client.ObjectKey{Namespace: w.namespace, Name: name})
	fields := map[string]any{"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"}}
	for _, s := range spec {
		fields["suspend"] = s == "true"
	}
	obj.Object["spec"] = fields
	return obj
}

// apply is what kustomize-controller does.
func (w *world) apply(obj *unstructured.Unstructured, opts ...client.ApplyOption) *unstructured.Unstructured {
	w.Helper()
	config := obj.DeepCopy()
	w.must(cluster.Client.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(config),
		append(opts, client.FieldOwner("kustomize-controller"), client.ForceOwnership)...))
	return config
}

// patch is what the flux CLI does.
func (w *world) patch(obj *unstructured.Unstructured, patch string) error {
	return cluster.Client.Patch(w.ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("flux"))
}

func (w *world) resume(obj *unstructured.Unstructured) {
	w.Helper()
	w.must(w.patch(obj, `{"spec":{"suspend":null}}`))
}

func (w *world) suspend(obj *unstructured.Unstructured) {
	w.Helper()
	w.must(w.patch(obj, `{"spec":{"suspend":true}}`))
}

func (w *world) reload(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	w.must(cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj))
	return obj
}

// expectHeld checks that an object is suspended in the name of gates, by nobody
// but the lock.
func (w *world) expectHeld(obj *unstructured.Unstructured, by string) {
	w.Helper()
	w.reload(obj)
	if !suspended(obj) || heldBy(obj) != by || len(owners(obj)) > 0 {
		w.Errorf("suspended %t, held by %q, owned by %q; want held by %q", suspended(obj), heldBy(obj), owners(obj), by)
	}
}

// expectFree checks that nobody holds an object.
func (w *world) expectFree(obj *unstructured.Unstructured) {
	w.Helper()
	w.reload(obj)
	if suspended(obj) || heldBy(obj) != "" {
		w.Errorf("suspended %t, held by %q", suspended(obj), heldBy(obj))
	}
}

func suspended(obj *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	return value
}

func heldBy(obj *unstructured.Unstructured) string {
	return obj.GetAnnotations()[v1alpha1.HeldByAnnotation]
}

// owners are the field managers that own spec.suspend.
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
