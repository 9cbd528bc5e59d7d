// Package namespaces tests one Gate for all namespaces: the built gating-controller with the permissions of config/rbac, the
// real kustomize-controller, and the lock.
package namespaces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var (
	cluster   *harness.ControlPlane
	artifacts *harness.ArtifactServer
	gating    *harness.Process
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, "kustomize-controller", "source-controller"))
}

func setup(ctx context.Context) (stop func() error, err error) {
	artifacts = harness.StartArtifactServer()
	var flux *harness.Process
	stop = func() error {
		artifacts.Stop()
		return errors.Join(gating.Stop(), flux.Stop())
	}
	if err := errors.Join(cluster.Install(ctx), cluster.InstallComponent(ctx, "lock")); err != nil {
		return stop, err
	}
	if flux, err = cluster.StartKustomizeController(ctx); err != nil {
		return stop, err
	}
	return stop, startGating(ctx)
}

// acrossNamespaces is the flag that allows Gates to hold targets in other namespaces.
const acrossNamespaces = "--no-cross-namespace-refs=false"

func startGating(ctx context.Context) (err error) {
	gating, err = cluster.StartGatingController(ctx, acrossNamespaces)
	return err
}

// world is a namespace with a Gate for all namespaces with a label of this world.
type world struct {
	*harness.World
	freeze *v1alpha1.Gate
}

// tenant is the label of the namespaces that a Gate freezes.
const tenant = "tenant-of"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: harness.NewWorld(t, cluster)}
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating} })
	return w
}

// close creates a closed Gate, and waits until the lock is in force.
func (w *world) close() {
	w.Helper()
	w.freeze = w.ClosedGate("freeze", v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{
		MatchLabels: map[string]string{tenant: w.Namespace},
	}})
	probe := w.app(w.tenant(), "probe")
	w.Eventually("the lock is in force", func() error {
		obj := probe.DeepCopy()
		if err := w.Client.Create(w.Context(), obj, client.DryRunAll); err != nil {
			return err
		}
		if !harness.Suspended(obj) {
			return errors.New("a new object is not held")
		}
		return nil
	})
}

// tenant creates a namespace that the Gate freezes.
func (w *world) tenant() string {
	w.Helper()
	return w.NewNamespace(func(n *corev1.Namespace) { n.Labels = map[string]string{tenant: w.Namespace} })
}

// app returns a Kustomization in another namespace.
func (w *world) app(namespace, name string) *unstructured.Unstructured {
	obj := w.Kustomization(name)
	obj.SetNamespace(namespace)
	return obj
}

// becomes waits until a Kustomization is held by the Gate and owned by the controller, or not held.
func (w *world) becomes(obj *unstructured.Unstructured, held bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s/%s is held: %t", obj.GetNamespace(), obj.GetName(), held), func() error {
		w.Read(obj)
		by := harness.HeldBy(obj)
		if harness.Suspended(obj) != held || (by == w.Namespace+"/freeze") != held {
			return fmt.Errorf("suspended %t, held by %q", harness.Suspended(obj), by)
		}
		return nil
	})
}
