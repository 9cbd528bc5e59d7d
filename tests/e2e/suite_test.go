// Package e2e tests the built gating-controller as a process beside the real
// kustomize-controller and source-controller on a real kube-apiserver.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// patience for what must not happen. A change that is not held back arrives in a
	// fraction of it.
	patience = 4 * time.Second
)

// The parts that all tests share; some start gating again.
var (
	cluster   *harness.ControlPlane
	artifacts *harness.ArtifactServer
	gating    *harness.Process
	// kustomizer is kustomize-controller.
	kustomizer *harness.Process
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (stop func() error, err error) {
	artifacts = harness.StartArtifactServer()
	var sources *harness.Process
	stop = func() error {
		err := errors.Join(gating.Stop(), kustomizer.Stop(), sources.Stop())
		artifacts.Stop()
		return err
	}
	if err := cluster.Install(ctx); err != nil {
		return stop, err
	}
	if kustomizer, err = cluster.StartKustomizeController(ctx); err != nil {
		return stop, err
	}
	if sources, err = cluster.StartSourceController(ctx); err != nil {
		return stop, err
	}
	wrong := filepath.Join(cluster.Dir(), "zoneinfo")
	if err := errors.Join(tztest.Folder(wrong), os.Setenv("ZONEINFO", wrong)); err != nil {
		return stop, err
	}
	gating, err = cluster.StartGatingController(ctx)
	return stop, err
}

// world is a namespace with a Kustomization that applies a ConfigMap.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{harness.NewWorld(t, cluster)}
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating} })
	return w
}

// publish makes a ConfigMap named app, of a revision, the content of the
// artifact app.
func (w *world) publish(revision string) {
	w.Helper()
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("app"), revision, map[string]string{"app.yaml": w.configMap(revision)}))
}

func (w *world) configMap(revision string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  namespace: %s\ndata:\n  revision: %s\n", w.Namespace, revision)
}

// kustomization creates one that applies a source.
func (w *world) kustomization(name, sourceKind, sourceName string) *unstructured.Unstructured {
	w.Helper()
	obj := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key(name))
	obj.Object["spec"] = map[string]any{
		"interval": "1h", "prune": true, "path": "./",
		"sourceRef": map[string]any{"kind": sourceKind, "name": sourceName},
	}
	w.Create(obj)
	return obj
}

// heldApp returns a Kustomization that has applied revision v1 and is held by
// the Gate production since.
func (w *world) heldApp() *unstructured.Unstructured {
	w.Helper()
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.arrives("v1")
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"})
	w.suspend(app, true)
	// Until its condition says so, who resumes it is told that the Gate is closed, and not that it is held again.
	w.Eventually("it says that it is held", func() error {
		w.Read(app)
		if status, reason := harness.Condition(app, v1alpha1.ApprovedCondition); status != metav1.ConditionFalse {
			return fmt.Errorf("Approved is %q, %s", status, reason)
		}
		return nil
	})
	return app
}

// request has a person ask a Gate to open or to close.
func (w *world) request(action, gate string) {
	w.Helper()
	w.Annotate(w.ReadGate(gate), action+".gate.fluxcd.io/requestedAt", time.Now().UTC().Format(time.RFC3339))
}

// reconcileNow is what flux reconcile does.
func (w *world) reconcileNow(obj client.Object) (token string) {
	w.Helper()
	token = time.Now().Format(time.RFC3339Nano)
	w.Annotate(obj, fluxmeta.ReconcileRequestAnnotation, token)
	return token
}

// arrives waits until the ConfigMap is of a revision.
func (w *world) arrives(revision string) {
	w.Helper()
	w.Eventually("revision "+revision+" arrives", w.applied(revision))
}

// stays watches that the ConfigMap is of a revision and remains so.
func (w *world) stays(revision string) {
	w.Helper()
	w.Throughout(patience, "revision "+revision+" stays", w.applied(revision))
}

func (w *world) applied(revision string) func() error {
	return func() error {
		config := &corev1.ConfigMap{}
		if err := w.Client.Get(w.Context(), w.Key("app"), config); err != nil {
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
	w.Eventually(fmt.Sprintf("spec.suspend of %s is %v", obj.GetName(), want), func() error {
		if err := w.TryRead(obj); err != nil {
			return err
		}
		if got, _, err := unstructured.NestedBool(obj.Object, "spec", "suspend"); err != nil || got != want {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}
