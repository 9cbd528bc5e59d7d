// Package e2e tests the built gating-controller as a process beside the real
// kustomize-controller and source-controller on a real kube-apiserver.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// timeout for what must happen; two cores may be busy.
	timeout = time.Minute
	// patience for what must not happen. What is not held back arrives in a
	// fraction of it.
	patience = 4 * time.Second
)

// The parts that all tests share; gating is started anew by some.
var (
	cluster   *harness.ControlPlane
	artifacts *harness.ArtifactServer
	gating    *harness.Process
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (stop func() error, err error) {
	artifacts = harness.StartArtifactServer()
	var flux []*harness.Process
	stop = func() error {
		err := gating.Stop()
		for _, process := range flux {
			err = errors.Join(err, process.Stop())
		}
		artifacts.Stop()
		return err
	}
	if err := cluster.Install(ctx); err != nil {
		return stop, err
	}
	for _, start := range []func(context.Context) (*harness.Process, error){cluster.StartKustomizeController, cluster.StartSourceController} {
		process, err := start(ctx)
		if err != nil {
			return stop, err
		}
		flux = append(flux, process)
	}
	gating, err = cluster.StartGatingController(ctx)
	return stop, err
}

// world is a namespace with a Kustomization that applies a ConfigMap.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	w.must(cluster.Client.Create(w.ctx, namespace))
	w.namespace = namespace.Name
	t.Cleanup(func() {
		if t.Failed() {
			log, err := os.ReadFile(gating.Log)
			t.Logf("log of the gating-controller (%v):\n%s", err, log[max(0, len(log)-8000):])
		}
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// publish makes a ConfigMap named app, of a revision, the content of the
// artifact app.
func (w *world) publish(revision string) {
	w.Helper()
	w.must(artifacts.Publish(w.ctx, cluster.Client, w.key("app"), revision, map[string]string{"app.yaml": w.configMap(revision)}))
}

func (w *world) configMap(revision string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  namespace: %s\ndata:\n  revision: %s\n", w.namespace, revision)
}

// kustomization creates one that applies a source.
func (w *world) kustomization(name, sourceKind, sourceName string) *unstructured.Unstructured {
	w.Helper()
	obj := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.key(name))
	obj.Object["spec"] = map[string]any{
		"interval": "1h", "prune": true, "path": "./",
		"sourceRef": map[string]any{"kind": sourceKind, "name": sourceName},
	}
	w.must(cluster.Client.Create(w.ctx, obj))
	return obj
}

// gate creates a Gate.
func (w *world) gate(name string, spec v1alpha1.GateSpec) {
	w.Helper()
	w.must(cluster.Client.Create(w.ctx, &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: spec}))
}

// closedGate creates a Gate that is closed by default.
func (w *world) closedGate(name, kind, targetName string) {
	w.Helper()
	w.gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: kind, Name: targetName}}})
}

// heldApp returns a Kustomization that has applied revision v1 and is held by
// the Gate production since.
func (w *world) heldApp() *unstructured.Unstructured {
	w.Helper()
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.arrives("v1")
	w.closedGate("production", "Kustomization", "app")
	w.suspend(app, true)
	return app
}

// annotate does what a person does with kubectl.
func (w *world) annotate(kind, name string, annotations ...string) {
	w.Helper()
	args := append([]string{"--namespace", w.namespace, "annotate", "--overwrite", kind + "/" + name}, annotations...)
	_, err := cluster.Kubectl(w.ctx, args...)
	w.must(err)
}

func (w *world) request(action, gate string) {
	w.Helper()
	w.annotate("gate", gate, action+".gate.fluxcd.io/requestedAt="+time.Now().UTC().Format(time.RFC3339))
}

// reconcileNow is what flux reconcile does.
func (w *world) reconcileNow(kind, name string) {
	w.Helper()
	w.annotate(kind, name, "reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	w.must(harness.Eventually(w.ctx, timeout, what, check))
}

// arrives waits until the ConfigMap is of a revision.
func (w *world) arrives(revision string) {
	w.Helper()
	w.eventually("revision "+revision+" arrives", w.applied(revision))
}

// stays watches that the ConfigMap is of a revision and remains so.
func (w *world) stays(revision string) {
	w.Helper()
	w.must(harness.Throughout(w.ctx, patience, "revision "+revision+" stays", w.applied(revision)))
}

func (w *world) applied(revision string) func() error {
	return func() error {
		config := &corev1.ConfigMap{}
		if err := cluster.Client.Get(w.ctx, w.key("app"), config); err != nil {
			return err
		}
		if got := config.Data["revision"]; got != revision {
			return fmt.Errorf("the ConfigMap is of revision %q", got)
		}
		return nil
	}
}

// suspend waits until spec.suspend of a target is as wanted.
func (w *world) suspend(obj *unstructured.Unstructured, want bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("spec.suspend of %s is %v", obj.GetName(), want), func() error {
		if err := cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if got, _, err := unstructured.NestedBool(obj.Object, "spec", "suspend"); err != nil || got != want {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// opened waits until the condition Opened of a Gate is as wanted, and returns
// the Gate.
func (w *world) opened(name string, want metav1.ConditionStatus) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{}
	w.eventually(fmt.Sprintf("Opened of %s is %s", name, want), func() error {
		if err := cluster.Client.Get(w.ctx, w.key(name), g); err != nil {
			return err
		}
		if !meta.IsStatusConditionPresentAndEqual(g.Status.Conditions, v1alpha1.OpenedCondition, want) {
			return fmt.Errorf("conditions are %v", g.Status.Conditions)
		}
		return nil
	})
	return g
}
