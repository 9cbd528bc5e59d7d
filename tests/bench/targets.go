package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	kustomizeVersion = "kustomize.toolkit.fluxcd.io/v1"
	kustomization    = "Kustomization"
	// fluxManager wrote the objects before they became targets.
	fluxManager = "kustomize-controller"
	// setUpAtOnce bounds how many objects are created concurrently.
	setUpAtOnce = 16
	// inventory is the number of objects in the inventory of a Kustomization.
	inventory = 20
)

// targets returns n Kustomizations of a group, spread evenly over its namespaces, and creates missing ones.
func (b *bench) targets(ctx context.Context, group string, namespaces, n int) ([]client.ObjectKey, error) {
	have := b.groups[group]
	if len(have) >= n {
		return have[:n], nil
	}
	if len(have) == 0 {
		var names []string
		for i := range namespaces {
			names = append(names, namespaceOf(group, i))
		}
		if err := inParallel(setUpAtOnce, names, func(name string) error { return b.makeNamespace(ctx, group, name) }); err != nil {
			return nil, err
		}
	}
	b.logf("creating %d Kustomizations in %d namespaces", n-len(have), namespaces)
	var keys []client.ObjectKey
	for i := len(have); i < n; i++ {
		keys = append(keys, client.ObjectKey{Namespace: namespaceOf(group, i%namespaces), Name: fmt.Sprintf("app-%05d", i)})
	}
	if err := inParallel(setUpAtOnce, keys, func(key client.ObjectKey) error { return b.makeKustomization(ctx, group, key) }); err != nil {
		return nil, err
	}
	b.groups[group] = append(have, keys...)
	return b.groups[group], nil
}

func namespaceOf(group string, i int) string { return fmt.Sprintf("%s-%02d", group, i) }

func inParallel[T any](limit int, items []T, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(limit)
	for _, item := range items {
		group.Go(func() error { return do(item) })
	}
	return group.Wait()
}

// partOf labels namespaces and targets with their group.
const partOf = "app.kubernetes.io/part-of"

func (b *bench) makeNamespace(ctx context.Context, group, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{partOf: group}}}
	return client.IgnoreAlreadyExists(b.client.Create(ctx, namespace))
}

// makeKustomization creates a Kustomization as Flux leaves it: applied from Git, reconciled, with its conditions and its inventory.
func (b *bench) makeKustomization(ctx context.Context, group string, key client.ObjectKey) error {
	obj, err := b.applyKustomization(ctx, group, key)
	if err != nil {
		return err
	}
	obj.Object["status"] = kustomizationStatus(key)
	obj.SetManagedFields(nil)
	return b.client.Status().Update(ctx, obj, client.FieldOwner("gotk-"+fluxManager))
}

// applyKustomization creates a Kustomization as Flux applies it from Git.
func (b *bench) applyKustomization(ctx context.Context, group string, key client.ObjectKey) (*unstructured.Unstructured, error) {
	obj := newKustomization(key)
	obj.SetLabels(map[string]string{
		"kustomize.toolkit.fluxcd.io/name": "flux-system", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
		partOf: group, "app.kubernetes.io/name": key.Name,
	})
	obj.Object["spec"] = map[string]any{
		"interval": "10m0s", "retryInterval": "2m0s", "timeout": "5m0s", "prune": true, "wait": false, "path": "./apps/" + key.Name + "/production",
		"targetNamespace": key.Namespace,
		"sourceRef":       map[string]any{"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"},
		"dependsOn":       []any{map[string]any{"name": "infrastructure", "namespace": "flux-system"}},
		"healthChecks": []any{
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": key.Name, "namespace": key.Namespace},
			map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": key.Name + "-db", "namespace": key.Namespace},
		},
		"postBuild": map[string]any{
			"substitute":     map[string]any{"cluster": "production", "region": "eu-north-1"},
			"substituteFrom": []any{map[string]any{"kind": "ConfigMap", "name": "cluster-settings"}},
		},
	}
	return obj, b.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(fluxManager))
}

func newKustomization(key client.ObjectKey) *unstructured.Unstructured {
	return harness.Object(kustomizeVersion, kustomization, key)
}

func kustomizationStatus(key client.ObjectKey) map[string]any {
	const revision = "main@sha1:1f0a5bd1c3f4e5a6b7c8d9e0f1a2b3c4d5e6f7a8"
	var entries []any
	for i := range inventory {
		entries = append(entries, map[string]any{"id": fmt.Sprintf("%s_%s-%02d_apps_Deployment", key.Namespace, key.Name, i), "v": "v1"})
	}
	return map[string]any{
		"observedGeneration": int64(1), "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
		"inventory": map[string]any{"entries": entries},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": int64(1),
			"message": "Applied revision: " + revision, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}, map[string]any{
			"type": "Healthy", "status": "True", "reason": "HealthCheckSucceeded", "observedGeneration": int64(1),
			"message": "Health check passed in " + strconv.Itoa(len(key.Name)) + "s", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}
}
