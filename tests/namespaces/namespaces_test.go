package namespaces

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestNewNamespaceIsFrozenUntilFreezeEnds(t *testing.T) {
	w := newWorld(t)
	w.close()
	for i := range 20 {
		app := w.app(w.tenant(), fmt.Sprintf("app-%d", i))
		w.Create(app)
		if !harness.Suspended(app) || harness.HeldBy(app) != w.Namespace+"/freeze" {
			t.Fatalf("created with suspended %t, held by %q", harness.Suspended(app), harness.HeldBy(app))
		}
		w.becomes(app, true)
		w.Must(w.Flux(app, `{"spec":{"suspend":null}}`))
		w.becomes(app, true)
	}
	other := w.app(w.NewNamespace(), "app")
	w.Create(other)
	w.becomes(other, false)
}

func TestNamespaceLabelsAreFollowed(t *testing.T) {
	w := newWorld(t)
	w.close()
	namespace := w.NewNamespace()
	app := w.app(namespace, "app")
	w.Create(app)
	label := func(value string) {
		obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		w.Must(w.Client.Patch(w.Context(), obj, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, tenant, value))))
	}
	w.becomes(app, false)
	label(`"` + w.Namespace + `"`)
	w.becomes(app, true)
	label("null")
	w.becomes(app, false)
}

// The API server holds objects while no controller runs, and the controller takes them over later.
func TestNamespaceCreatedDuringDowntimeIsFrozen(t *testing.T) {
	w := newWorld(t)
	w.close()
	w.Must(gating.Kill())
	app := w.app(w.tenant(), "app")
	w.Create(app)
	if !harness.Suspended(app) || harness.HeldBy(app) != w.Namespace+"/freeze" {
		t.Errorf("created with suspended %t, held by %q", harness.Suspended(app), harness.HeldBy(app))
	}
	w.Must(startGating(context.WithoutCancel(w.Context())))
	w.becomes(app, true)
	w.Annotate(w.freeze, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	w.becomes(app, false)
}

func TestManyNewNamespaces(t *testing.T) {
	w := newWorld(t)
	w.close()
	before := w.fleetLock().ResourceVersion
	const n = 400
	apps := make([]*unstructured.Unstructured, n)
	var workers sync.WaitGroup
	next := make(chan int)
	for range 8 {
		workers.Go(func() {
			for i := range next {
				apps[i] = w.app(w.tenant(), "app")
				w.Create(apps[i])
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, app := range apps {
		w.becomes(app, true)
	}
	if after := w.fleetLock().ResourceVersion; after != before {
		t.Error("the GateLock of all namespaces was written")
	}
	locks := &lockv1alpha1.GateLockList{}
	w.Must(w.Client.List(w.Context(), locks))
	own := map[string]bool{}
	for i := range locks.Items {
		own[locks.Items[i].Namespace] = true
	}
	for _, app := range apps {
		if own[app.GetNamespace()] {
			t.Fatal("a namespace has a separate GateLock")
		}
	}
	w.Eventually("the Gate counts them", func() error {
		if targets := w.ReadGate("freeze").Status.Targets; targets == nil || targets.Held != n || targets.Failed > 0 {
			return fmt.Errorf("targets are %+v", targets)
		}
		return nil
	})
	w.Annotate(w.freeze, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	for _, app := range apps {
		w.becomes(app, false)
	}
}

func (w *world) fleetLock() *lockv1alpha1.GateLock {
	w.Helper()
	obj := &lockv1alpha1.GateLock{ObjectMeta: metav1.ObjectMeta{Namespace: harness.RuntimeNamespace, Name: lockv1alpha1.AllNamespacesLockName}}
	w.Read(obj)
	return obj
}

// Flux applies the namespace of a new tenant together with its content.
func TestTenantCreatedByFluxDuringFreezeIsHeld(t *testing.T) {
	w := newWorld(t)
	w.close()
	name := w.Namespace + "-new"
	manifests := fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
  labels: {%[2]s: %[3]s}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: %[1]s}
spec:
  interval: 1h
  prune: true
  path: ./
  sourceRef: {apiVersion: source.toolkit.fluxcd.io/v1, kind: ExternalArtifact, name: apps}
`, name, tenant, w.Namespace)
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("tenants"), "v1", map[string]string{"tenant.yaml": manifests}))
	parent := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("tenants"))
	parent.Object["spec"] = map[string]any{
		"interval": "1h", "prune": true, "path": "./",
		"sourceRef": map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact", "name": "tenants"},
	}
	w.Create(parent)
	apps := w.app(name, "apps")
	w.Eventually("Flux has applied it", func() error { return w.TryRead(apps) })
	w.becomes(apps, true)
	if observed, _, _ := unstructured.NestedInt64(apps.Object, "status", "observedGeneration"); observed > 0 {
		t.Errorf("the Kustomization was reconciled: %v", apps.Object["status"])
	}
	w.Annotate(w.freeze, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	w.becomes(apps, false)
}
