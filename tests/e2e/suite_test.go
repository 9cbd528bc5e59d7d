// Package e2e tests the built gating-controller as a process, together with the real kustomize-controller and source-controller on a real
// kube-apiserver.
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
	// patience is how long to wait for a change that must not happen. A change that is not held arrives in a fraction of it.
	patience = 4 * time.Second
)

// The state that all tests share. Some tests restart gating.
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

// publish publishes a ConfigMap named app with a revision as the artifact app.
func (w *world) publish(revision string) {
	w.Helper()
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("app"), revision, map[string]string{"app.yaml": w.configMap(revision)}))
}

func (w *world) configMap(revision string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  namespace: %s\ndata:\n  revision: %s\n", w.Namespace, revision)
}

// kustomization creates a Kustomization of a source.
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

// heldApp returns a Kustomization that has applied revision v1 and is held by the Gate production.
func (w *world) heldApp() *unstructured.Unstructured {
	w.Helper()
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.arrives("v1")
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"})
	w.suspend(app, true)
	// Before the condition is written, a resume is reported as one of a closed Gate, not as one of a held target.
	w.Eventually("the condition reports the hold", func() error {
		w.Read(app)
		if status, reason := harness.Condition(app, v1alpha1.ApprovedCondition); status != metav1.ConditionFalse {
			return fmt.Errorf("Approved is %q, %s", status, reason)
		}
		return nil
	})
	return app
}

// request makes a user request to open or to close a Gate.
func (w *world) request(action, gate string) {
	w.Helper()
	w.Annotate(w.ReadGate(gate), action+".gate.fluxcd.io/requestedAt", time.Now().UTC().Format(time.RFC3339))
}

// reconcileNow requests a reconciliation as flux reconcile does.
func (w *world) reconcileNow(obj client.Object) (token string) {
	w.Helper()
	token = time.Now().Format(time.RFC3339Nano)
	w.Annotate(obj, fluxmeta.ReconcileRequestAnnotation, token)
	return token
}

// arrives waits until the ConfigMap has a revision.
func (w *world) arrives(revision string) {
	w.Helper()
	w.Eventually("revision "+revision+" arrives", w.applied(revision))
}

// stays checks that the ConfigMap keeps a revision.
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
			return fmt.Errorf("the ConfigMap has revision %q", got)
		}
		return nil
	}
}

// suspend waits until spec.suspend of a target has a value.
func (w *world) suspend(obj *unstructured.Unstructured, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("spec.suspend of %s is %v", obj.GetName(), want), func() error {
		if err := w.TryRead(obj); err != nil {
			return err
		}
		if got, _, err := unstructured.NestedBool(obj.Object, "spec", "suspend"); err != nil || got != want {
			return fmt.Errorf("spec.suspend is %v", got)
		}
		return nil
	})
}
