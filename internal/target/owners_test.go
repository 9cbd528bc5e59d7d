package target_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestOtherOwnersAreListedOnceWithTheirLastTime(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	suspend, other := map[string]any{"f:spec": map[string]any{"f:suspend": map[string]any{}}}, map[string]any{"f:spec": map[string]any{"f:path": map[string]any{}}}
	entry := func(manager string, after time.Duration, fields map[string]any) any {
		return map[string]any{"manager": manager, "time": at.Add(after).Format(time.RFC3339), "fieldsV1": fields}
	}
	us := target.Identity{Manager: "gate"}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "apps", "managedFields": []any{
			entry("kubectl", 0, suspend), entry("flux", time.Minute, suspend), entry("flux", time.Hour, suspend), entry("flux", time.Second, suspend),
			entry("gate", 0, suspend), entry("helm", 0, other),
		}},
	}}
	want := []target.Owner{{Manager: "flux", At: at.Add(time.Hour)}, {Manager: "kubectl", At: at}}
	if got := target.OtherOwners(obj, us); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
