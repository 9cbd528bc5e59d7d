package gate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func TestOverlaidTargetsAreDescribed(t *testing.T) {
	open, shut := v1alpha1.StateOpened, v1alpha1.StateClosed
	for name, test := range map[string]struct {
		opened   metav1.ConditionStatus
		overlaid int64
		overlay  v1alpha1.State
		want     string
	}{
		"opened in a closed gate":            {metav1.ConditionFalse, 2, open, "2 of 40 open"},
		"closed in an open gate":             {metav1.ConditionTrue, 1, shut, "1 of 40 closed"},
		"matches no target":                  {metav1.ConditionFalse, 0, open, ""},
		"has ended, the targets are pending": {metav1.ConditionFalse, 2, "", ""},
		"the gate has just opened":           {metav1.ConditionTrue, 2, open, ""},
	} {
		g := production(closed())
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: test.opened}}
		g.Status.Overlays = []v1alpha1.Overlay{{Exception: "x", State: test.overlay}}
		g.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 40, Overlaid: test.overlaid}}
		if got := gate.Overlaid(g); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if got := gate.Overlaid(production(closed())); got != "" {
		t.Errorf("a gate without a status: %q", got)
	}
}
