package gate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/queue"
)

func TestOnlyClosingTransitionIsUrgent(t *testing.T) {
	edge := start
	transition := func(state v1alpha1.State, after time.Duration) *v1alpha1.Transition {
		return &v1alpha1.Transition{State: state, At: metav1.NewTime(edge.Add(after))}
	}
	overlay := func(state v1alpha1.State, after time.Duration, then v1alpha1.State) *v1alpha1.Overlay {
		return &v1alpha1.Overlay{State: state, Until: metav1.NewTime(edge.Add(after)), Next: then}
	}
	for name, tc := range map[string]struct {
		next    *v1alpha1.Transition
		overlay *v1alpha1.Overlay
		behind  time.Duration
		want    queue.Class
	}{
		"it closes":                                   {transition(v1alpha1.StateClosed, 0), nil, 0, queue.Hold},
		"it closes by the API server's clock":         {transition(v1alpha1.StateClosed, time.Minute), nil, time.Minute, queue.Hold},
		"it closes, the API server's clock is behind": {transition(v1alpha1.StateClosed, 0), nil, -time.Minute, queue.Hold},
		"it opens":                   {transition(v1alpha1.StateOpened, 0), nil, 0, queue.Change},
		"it closes later":            {transition(v1alpha1.StateClosed, time.Second), nil, 0, queue.Change},
		"no transition is scheduled": {nil, nil, 0, queue.Change},
		"an overlay closes":          {nil, overlay("", 0, v1alpha1.StateClosed), 0, queue.Hold},
		"an overlay stops opening":   {nil, overlay(v1alpha1.StateOpened, 0, ""), 0, queue.Hold},
		"an overlay opens":           {nil, overlay("", 0, v1alpha1.StateOpened), 0, queue.Change},
		"an overlay closes later":    {nil, overlay("", time.Second, v1alpha1.StateClosed), 0, queue.Change},
	} {
		g := &v1alpha1.Gate{}
		if g.Status.NextTransition = tc.next; tc.overlay != nil {
			g.Status.Overlays = []v1alpha1.Overlay{*tc.overlay}
		}
		if got := classAt(g, edge, tc.behind); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
