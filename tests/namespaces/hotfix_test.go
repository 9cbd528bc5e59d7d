package namespaces

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// tenants is the number of namespaces in the scenario, and ofEach the number of Kustomizations in each.
	tenants, ofEach = 10, 20
	// window is the duration of the hotfix.
	window = 25 * time.Second
)

// publish publishes a revision with a folder for each Kustomization of a tenant.
func (w *world) publish(revision string) {
	w.Helper()
	files := map[string]string{}
	for i := range ofEach {
		name := fmt.Sprintf("app-%02d", i)
		files[name+"/app.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {revision: %s}\n", name, revision)
	}
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("apps"), revision, files))
}

// apps creates the Kustomizations of all tenants.
func (w *world) apps() (all []*unstructured.Unstructured) {
	w.Helper()
	for range tenants {
		namespace := w.tenant()
		for i := range ofEach {
			app := w.app(namespace, fmt.Sprintf("app-%02d", i))
			app.Object["spec"] = map[string]any{
				"interval": "1h", "prune": true, "path": "./" + app.GetName(), "targetNamespace": namespace,
				"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "apps", "namespace": w.Namespace},
			}
			w.Create(app)
			all = append(all, app)
		}
	}
	return all
}

// haveApplied waits until Kustomizations have applied a revision.
func (w *world) haveApplied(revision string, apps ...*unstructured.Unstructured) {
	w.Helper()
	for _, app := range apps {
		w.Eventually(fmt.Sprintf("%s/%s has applied %s", app.GetNamespace(), app.GetName(), revision), func() error {
			w.Read(app)
			if got := applied(app); got != revision {
				return fmt.Errorf("it has applied %q", got)
			}
			return nil
		})
	}
}

func applied(app *unstructured.Unstructured) string {
	revision, _, _ := unstructured.NestedString(app.Object, "status", "lastAppliedRevision")
	return revision
}

// killed waits until the controller is killed, and starts it again.
func (w *world) killed(k *harness.Killer, when string, next ...string) {
	w.Helper()
	w.Eventually("the controller is killed "+when, func() error {
		if k.IsAlive() {
			return errors.New("it is alive")
		}
		return nil
	})
	if len(next) > 0 {
		k.KillAt(0, true, next...)
	}
	k.Start(w.World)
}

// A freeze covers 200 Kustomizations in ten namespaces, with the lock. A hotfix opens it for two of them, and then they are held again. The
// controller is killed after it has stored the decision, after it has unlocked the two, after it has released one of them, and after it
// has held one of them again.
func TestHotfixForTwoOf200DuringFreeze(t *testing.T) {
	newWorld(t).close() // until the API server has the lock, it refuses new objects
	w := newWorld(t)
	w.publish("v1")
	apps := w.apps()
	w.haveApplied("v1", apps...)
	w.close()
	settled := func() {
		w.Decided(w.freeze)
		w.Eventually("all are held", func() error {
			if w.Read(w.freeze); w.freeze.Status.Targets == nil || w.freeze.Status.Targets.Held != int64(len(apps)) || !conditions.IsReady(w.freeze) {
				return fmt.Errorf("%+v", w.freeze.Status)
			}
			return nil
		})
	}
	settled()
	cluster := *w.World
	cluster.Namespace = metav1.NamespaceAll
	versions := cluster.Record(apps[0].GroupVersionKind())
	w.publish("v2")

	fixed := []*unstructured.Unstructured{apps[3], apps[ofEach+17]}
	others := slices.DeleteFunc(slices.Clone(apps), func(app *unstructured.Unstructured) bool { return slices.Contains(fixed, app) })
	var only, writes []string
	for _, app := range fixed {
		only = append(only, fmt.Sprintf("--only=kustomization/%s/%s", app.GetNamespace(), app.GetName()))
		writes = append(writes, fmt.Sprintf("/namespaces/%s/kustomizations/%s", app.GetNamespace(), app.GetName()))
	}
	k := w.StartKiller(&gating, acrossNamespaces)
	settled()
	k.KillAt(0, true, "/gates/freeze/status")
	var opens sync.WaitGroup
	opens.Go(func() { // it waits for the controller, which is killed meanwhile
		w.plugin(w.Kubeconfig, append([]string{"open", "freeze", "-n", w.Namespace, "--for", window.String(), "--reason", "hotfix"}, only...)...)
	})
	w.killed(k, "after the decision", "/gatelocks/all-namespaces")
	w.killed(k, "after the write of the lock", writes...)
	opens.Wait()
	if w.Read(w.freeze); len(w.freeze.Status.Overlays) != 1 || w.freeze.Status.Overlays[0].State != v1alpha1.StateOpened {
		t.Fatalf("the overlays are %+v", w.freeze.Status.Overlays)
	}
	until := w.freeze.Status.Overlays[0].Until.Time
	w.killed(k, "after the first release")
	w.haveApplied("v2", fixed...)
	for i := 0; i < len(others); i += 5 {
		w.Must(w.Flux(others[i], `{"spec":{"suspend":null}}`))
	}
	for _, app := range fixed { // a user may suspend and resume them
		w.Must(w.Flux(app, `{"spec":{"suspend":true}}`))
		w.Must(w.Flux(app, `{"spec":{"suspend":null}}`))
		if w.Read(app); harness.Suspended(app) {
			t.Errorf("%s is held %s before the end", app.GetName(), time.Until(until))
		}
	}
	k.KillAt(0, true, writes...)
	if left := time.Until(until); left <= 0 {
		t.Fatalf("too late by %s", -left)
	}
	w.killed(k, "after the first hold")
	if early := time.Until(until); early > 0 {
		t.Errorf("held %s early", early)
	}
	for _, app := range fixed {
		w.becomes(app, true)
		w.Must(w.Flux(app, `{"spec":{"suspend":null}}`))
		w.becomes(app, true)
	}
	w.publish("v3")
	w.Decided(w.freeze)
	w.expectOnly(fixed, others, versions)
}

// expectOnly checks that all Kustomizations are held now, the fixed ones at v2 and the others at v1. The others must have been held at v1
// in all versions.
func (w *world) expectOnly(fixed, others []*unstructured.Unstructured, versions *harness.History) {
	w.Helper()
	touched := map[client.ObjectKey]bool{}
	for _, version := range versions.All() {
		if !harness.Suspended(version) || applied(version) != "v1" {
			touched[client.ObjectKeyFromObject(version)] = true
		}
	}
	for revision, apps := range map[string][]*unstructured.Unstructured{"v1": others, "v2": fixed} {
		for _, app := range apps {
			config := &corev1.ConfigMap{}
			w.Must(w.Client.Get(w.Context(), client.ObjectKeyFromObject(app), config))
			w.Read(app)
			if !harness.Suspended(app) || applied(app) != revision || config.Data["revision"] != revision || touched[client.ObjectKeyFromObject(app)] != (revision == "v2") {
				w.Errorf("%s/%s: suspended %t, applied %s, ConfigMap %s, touched %t", app.GetNamespace(), app.GetName(), harness.Suspended(app), applied(app), config.Data, touched[client.ObjectKeyFromObject(app)])
			}
		}
	}
}
