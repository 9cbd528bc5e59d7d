package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// stage publishes a ConfigMap, or a failing build, as the content of staging.
func (w *world) stage(revision string, builds bool) {
	w.Helper()
	files := map[string]string{"config.yaml": fmt.Sprintf(
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: staging\n  namespace: %s\ndata:\n  revision: %s\n", w.Namespace, revision)}
	if !builds {
		files["kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- missing.yaml\n"
	}
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("staging"), revision, files))
}

// transitions records the states of a Gate from now on, as the status and reason of the condition Opened. The returned function stops
// recording once all states are recorded, and returns them.
func (w *world) transitions(name string) func() []string {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	watcher, err := w.Client.Watch(ctx, &v1alpha1.GateList{}, client.InNamespace(w.Namespace), client.MatchingFields{"metadata.name": name})
	w.Must(err)
	var mu sync.Mutex
	var states []string
	var version string
	note := func(g *v1alpha1.Gate) {
		mu.Lock()
		defer mu.Unlock()
		version = g.ResourceVersion
		c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
		if c == nil {
			return
		}
		if state := fmt.Sprintf("%s %s", c.Status, c.Reason); len(states) == 0 || states[len(states)-1] != state {
			states = append(states, state)
		}
	}
	go func() {
		for event := range watcher.ResultChan() {
			if g, ok := event.Object.(*v1alpha1.Gate); ok {
				note(g)
			}
		}
	}()
	return func() []string {
		w.Helper()
		w.Eventually("the watch has caught up", func() error {
			mu.Lock()
			defer mu.Unlock()
			if now := w.ReadGate(name).ResourceVersion; version != now {
				return fmt.Errorf("the watch is at version %q, not %q", version, now)
			}
			return nil
		})
		cancel()
		mu.Lock()
		defer mu.Unlock()
		return states
	}
}

// reconciled triggers a reconciliation of a Kustomization by Flux, and waits for its end.
func (w *world) reconciled(obj *unstructured.Unstructured) {
	w.Helper()
	token := w.reconcileNow(obj)
	w.Eventually("kustomize-controller handles "+token, func() error {
		if err := w.TryRead(obj); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(obj.Object, "status", "lastHandledReconcileAt"); got != token {
			return fmt.Errorf("kustomize-controller handled %q", got)
		}
		return nil
	})
}

func TestFailedStagingClosesProductionUntilFixed(t *testing.T) {
	w := newWorld(t)
	w.stage("s1", true)
	staging := w.kustomization("staging", "ExternalArtifact", "staging")
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Interval: v1alpha1.Duration{Duration: time.Hour},
		Targets:   []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "app"}},
		DependsOn: []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "staging"}},
	})
	w.Opened("production", metav1.ConditionTrue)
	w.arrives("v1")

	states := w.transitions("production")
	for range 5 { // each reconciliation sets Ready to Unknown for a moment
		w.reconciled(staging)
	}
	w.stage("s2", false)
	g := w.Opened("production", metav1.ConditionFalse)
	w.suspend(app, true)
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition); c.Reason != v1alpha1.DependencyNotReadyReason ||
		!strings.Contains(c.Message, "Kustomization '"+w.Namespace+"/staging' is not ready: BuildFailed: ") {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
	w.publish("v2")
	w.reconcileNow(app)
	w.stays("v1")

	w.stage("s3", true)
	w.Opened("production", metav1.ConditionTrue)
	w.suspend(app, false)
	w.arrives("v2")
	if got := strings.Join(states(), ", "); got != "True Default, False DependencyNotReady, True Default" {
		t.Errorf("the states of the gate were %s", got)
	}
}
