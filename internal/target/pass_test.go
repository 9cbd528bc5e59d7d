package target_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/target"
)

func TestReconciliationTimeouts(t *testing.T) {
	for name, tc := range map[string]struct {
		kind string
		spec map[string]any
		want time.Duration
	}{
		"its timeout":                        {"Kustomization", map[string]any{"timeout": "4m", "interval": "1h"}, 4*time.Minute + 30*time.Second},
		"the interval of a Kustomization":    {"Kustomization", map[string]any{"interval": "10m"}, 10 * time.Minute},
		"at least a minute":                  {"Kustomization", map[string]any{"interval": "10s"}, time.Minute},
		"five minutes of helm":               {"HelmRelease", map[string]any{"interval": "1h"}, 5*time.Minute + 30*time.Second},
		"a minute of a source":               {"GitRepository", map[string]any{"interval": "1h"}, time.Minute + 30*time.Second},
		"the interval of an ImageRepository": {"ImageRepository", map[string]any{"interval": "3m"}, 3*time.Minute + 30*time.Second},
		"a minute if it cannot be read":      {"HelmRepository", map[string]any{"timeout": "soon", "interval": 7}, time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{"kind": tc.kind, "spec": tc.spec}}}
			if got := target.ReconcileTimeout(obj); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
