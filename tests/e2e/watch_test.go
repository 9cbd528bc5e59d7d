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

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// stage makes a ConfigMap the content of staging, or a build that fails.
func (w *world) stage(revision string, builds bool) {
	w.Helper()
	files := map[string]string{"config.yaml": fmt.Sprintf(
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: staging\n  namespace: %s\ndata:\n  revision: %s\n", w.namespace, revision)}
	if !builds {
		files["kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- missing.yaml\n"
	}
	w.must(artifacts.Publish(w.ctx, cluster.Client, w.key("staging"), revision, files))
}

// transitions notes each state of a Gate from now on, as the status and reason of the
// condition Opened. What it returns ends that.
func (w *world) transitions(name string) func() []string {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	watcher, err := cluster.Client.Watch(ctx, &v1alpha1.GateList{}, client.InNamespace(w.namespace), client.MatchingFields{"metadata.name": name})
	w.must(err)
	var mu sync.Mutex
	var states []string
	go func() {
		for event := range watcher.ResultChan() {
			g, ok := event.Object.(*v1alpha1.Gate)
			if !ok {
				continue
			}
			if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition); c != nil {
				mu.Lock()
				if state := fmt.Sprintf("%s %s", c.Status, c.Reason); len(states) == 0 || states[len(states)-1] != state {
					states = append(states, state)
				}
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		cancel()
		mu.Lock()
		defer mu.Unlock()
		return states
	}
}

// reconciled has Flux reconcile a Kustomization and waits until it has.
func (w *world) reconciled(obj *unstructured.Unstructured) {
	w.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	w.annotate("kustomization", obj.GetName(), meta.ReconcileRequestAnnotation+"="+token)
	w.eventually("kustomize-controller handles "+token, func() error {
		if err := cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(obj.Object, "status", "lastHandledReconcileAt"); got != token {
			return fmt.Errorf("it handled %q", got)
		}
		return nil
	})
}

func TestAStagingThatFailsClosesProductionUntilItIsMended(t *testing.T) {
	w := newWorld(t)
	w.stage("s1", true)
	staging := w.kustomization("staging", "ExternalArtifact", "staging")
	w.publish("v1")
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Interval: metav1.Duration{Duration: time.Hour},
		Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "app"}},
		Watch:   []v1alpha1.WatchReference{{Kind: "Kustomization", Name: "staging"}},
	})
	w.opened("production", metav1.ConditionTrue)
	w.arrives("v1")

	states := w.transitions("production")
	for range 5 { // each sets Ready to Unknown for a moment
		w.reconciled(staging)
	}
	w.stage("s2", false)
	g := w.opened("production", metav1.ConditionFalse)
	w.suspend(app, true)
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition); c.Reason != v1alpha1.DependencyNotReadyReason ||
		!strings.Contains(c.Message, "Kustomization '"+w.namespace+"/staging' is not ready: BuildFailed: ") {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
	w.publish("v2")
	w.reconcileNow("kustomization", "app")
	w.stays("v1")

	w.stage("s3", true)
	w.opened("production", metav1.ConditionTrue)
	w.suspend(app, false)
	w.arrives("v2")
	if got := strings.Join(states(), ", "); got != "True Default, False DependencyNotReady, True Default" {
		t.Errorf("the gate was %s", got)
	}
}
