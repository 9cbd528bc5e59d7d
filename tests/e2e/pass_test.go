package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// requestPass requests a pass as kubectl gate pass does.
func (w *world) requestPass(obj *unstructured.Unstructured) {
	w.Helper()
	w.requestPassFor(obj, "")
}

// requestPassFor requests a pass with a duration, such as /30s.
func (w *world) requestPassFor(obj *unstructured.Unstructured, duration string) {
	w.Helper()
	w.Annotate(obj.DeepCopy(), v1alpha1.PassRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano)+duration, v1alpha1.PassGatesAnnotation, harness.HeldBy(obj))
}

// pass waits until the record of a pass is in a state, and returns it.
func (w *world) pass(obj *unstructured.Unstructured, state verdict.PassState) (p verdict.Pass) {
	w.Helper()
	w.Eventually(fmt.Sprintf("the pass of %s is %s", obj.GetName(), state), func() error {
		w.Read(obj)
		text := obj.GetAnnotations()[v1alpha1.PassAnnotation]
		if p, _ = verdict.ParseRecord(text); p.State != state {
			return fmt.Errorf("the record is %q", text)
		}
		return nil
	})
	return p
}

// passed waits until a pass has ended with an outcome and the object is held.
func (w *world) passed(obj *unstructured.Unstructured, outcome string) {
	w.Helper()
	p := w.pass(obj, verdict.PassEnded)
	if p.Outcome != outcome || !harness.Suspended(obj) || harness.HeldBy(obj) == "" || obj.GetAnnotations()[fluxmeta.ReconcileRequestAnnotation] == p.Since.Format(time.RFC3339Nano) {
		w.Errorf("want %s, got %+v, suspended %t", outcome, p, harness.Suspended(obj))
	}
}

// heldWithFlux returns an app that is held at v1. Flux reconciles it at most half a minute later.
func (w *world) heldWithFlux() *unstructured.Unstructured {
	w.Helper()
	app := w.heldApp()
	w.Must(w.Merge(app.DeepCopy(), `{"spec":{"timeout":"30s","retryInterval":"1s"}}`))
	w.Read(app)
	return app
}

func TestOneReconciliationOfFluxPasses(t *testing.T) { passes(t) }

func TestOneReconciliationOfFluxPassesTheLock(t *testing.T) {
	installLock(t)
	passes(t)
}

func passes(t *testing.T) {
	t.Run("with the newest of two revisions, and no later one", func(t *testing.T) {
		w := newWorld(t)
		app := w.heldWithFlux()
		w.publish("v2")
		w.publish("v3")
		w.stays("v1")
		h := w.Record(app.GroupVersionKind())
		w.requestPass(app)
		w.arrives("v3")
		w.passed(app, verdict.PassSucceeded)
		w.publish("v4")
		w.stays("v3")
		w.once(h)
		w.requestPass(app)
		w.arrives("v4")
		w.passed(app, verdict.PassSucceeded)
	})
	t.Run("and fails", func(t *testing.T) {
		w := newWorld(t)
		app := w.heldWithFlux()
		w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("app"), "v2", map[string]string{"app.yaml": "kind: [nonsense"}))
		w.requestPass(app)
		w.passed(app, verdict.PassFailed)
		w.publish("v3")
		w.stays("v1")
	})
	t.Run("and the controller is killed meanwhile", func(t *testing.T) {
		w := newWorld(t)
		app := w.heldWithFlux()
		w.publish("v2")
		w.requestPass(app)
		w.pass(app, verdict.PassInProgress)
		w.Must(gating.Kill())
		w.arrives("v2")
		var err error
		gating, err = cluster.StartGatingController(w.Context())
		w.Must(err)
		w.passed(app, verdict.PassSucceeded)
		w.publish("v3")
		w.stays("v2")
	})
	t.Run("of a source", func(t *testing.T) {
		w := newWorld(t)
		registry := harness.StartRegistry()
		t.Cleanup(registry.Stop)
		push := func(revision string) {
			w.Must(registry.Push("app", "latest", map[string]string{"app.yaml": w.configMap(revision)}))
		}
		push("v1")
		source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", w.Key("app"))
		source.Object["spec"] = map[string]any{"interval": "1h", "insecure": true, "url": registry.URL("app"), "ref": map[string]any{"tag": "latest"}}
		w.Create(source)
		w.kustomization("app", "OCIRepository", "app")
		w.arrives("v1")
		w.ClosedGate("freeze", v1alpha1.TargetReference{Kind: "OCIRepository", Name: "*"})
		w.suspend(source, true)
		push("v2")
		w.requestPass(source)
		w.arrives("v2")
		w.passed(source, verdict.PassSucceeded)
		push("v3")
		w.stays("v2")
	})
}

// once fails unless the history has exactly one pass that ended in one write, after which the object stayed suspended.
func (w *world) once(h *harness.History) {
	w.Helper()
	begun, ran := 0, false
	for _, version := range h.All() {
		runs := !harness.Suspended(version)
		if runs && !ran {
			begun++
		}
		ran = runs
	}
	if begun != 1 || ran {
		w.Errorf("resumed %d times, still resumed: %t", begun, ran)
	}
}

// Flux is down for half a minute, and finds the object held when it runs again.
func TestPassEndsWithoutFlux(t *testing.T) {
	w := newWorld(t)
	app := w.heldWithFlux()
	w.publish("v2")
	w.stays("v1")
	w.Must(kustomizer.Kill())
	back := sync.OnceFunc(func() {
		var err error
		kustomizer, err = cluster.StartKustomizeController(context.WithoutCancel(w.Context()))
		w.Must(err)
	})
	t.Cleanup(back)
	w.requestPassFor(app, "/30s")
	p := w.pass(app, verdict.PassInProgress)
	if d := p.Until.Sub(p.Since); d != 30*time.Second {
		t.Errorf("the pass lasts %s", d)
	}
	w.Must(harness.Eventually(w.Context(), 2*harness.Patience, "the pass has expired", func() error {
		if w.Read(app); !harness.Suspended(app) {
			return errors.New("the object is not suspended")
		}
		return nil
	}))
	w.passed(app, verdict.PassTimedOut)
	back()
	w.stays("v1")
}
