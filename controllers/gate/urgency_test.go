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
	for name, tc := range map[string]struct {
		next   *v1alpha1.Transition
		behind time.Duration
		want   queue.Class
	}{
		"it closes":                                   {transition(v1alpha1.StateClosed, 0), 0, queue.Hold},
		"it closes by the API server's clock":         {transition(v1alpha1.StateClosed, time.Minute), time.Minute, queue.Hold},
		"it closes, the API server's clock is behind": {transition(v1alpha1.StateClosed, 0), -time.Minute, queue.Hold},
		"it opens":                   {transition(v1alpha1.StateOpened, 0), 0, queue.Change},
		"it closes later":            {transition(v1alpha1.StateClosed, time.Second), 0, queue.Change},
		"no transition is scheduled": {nil, 0, queue.Change},
	} {
		if got := classAt(tc.next, edge, tc.behind); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
