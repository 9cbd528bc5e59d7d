package gate

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// The same failures have the same message each time, so that the status does not alternate.
func TestFailuresOfTargetsHaveStableError(t *testing.T) {
	g := &v1alpha1.Gate{}
	r := &Reconciler{Selector: &view.Selector{}, Summary: &summary.Summary{}}
	for i := range 12 {
		key := target.Key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("k%02d", i)}}
		failure := &summary.Failure{Reason: v1alpha1.WriteFailedReason, Message: "broken"}
		r.Summary.Put(key, []summary.Entry{{Gate: summary.KeyFor(g), Failure: failure}}, start)
	}
	for range 8 {
		failures, uncounted, err := r.targetFailures(t.Context(), g, decision{Resolution: &gate.Resolution{}})
		text := fmt.Sprint(err)
		isFirst := strings.HasPrefix(text, "12 targets failed, the first: ") && strings.HasSuffix(text, "k00: broken")
		if len(failures) != 12 || uncounted != 0 || !isFirst {
			t.Fatalf("%d failures, %d uncounted, error %v", len(failures), uncounted, err)
		}
	}
}
