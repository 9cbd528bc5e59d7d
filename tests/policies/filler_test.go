package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// All annotations of a Gate together have 256 KiB. A user who may only patch used to fill them, so that no close fitted.
func TestFillerBlocksNoClose(t *testing.T) {
	w := newWorld(t)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.decided(g, metav1.ConditionTrue)
	mallory := w.as("mallory", w.role([]string{"get", "patch"}, []string{"gates"}))
	carl := w.as("carl", w.role([]string{"get", "patch", "close"}, []string{"gates"}))
	file := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(file, []byte(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"`+strings.Repeat("x", 256<<10-100)+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.refusedTo(mallory, "more than 4096 characters", "patch", "gate", "production", "--type=merge", "--patch-file", file)
	w.allowed(carl, "annotate", "gate", "production", closeAt+"="+now()+"/2h")
}
