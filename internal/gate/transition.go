package gate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// lastTransition returns the last change of the state of the Gate, with its current cause. The time is now if the state has changed, or if
// it changed and changed back between two decisions.
func lastTransition(g *v1alpha1.Gate, d Decision, now time.Time, changed bool) *v1alpha1.Transition {
	last := g.Status.LastTransition
	at := metav1.NewTime(now)
	if last != nil && last.State == d.State && !changed {
		at = last.At
	}
	period, exception := Names(d.Reason, d.By)
	return &v1alpha1.Transition{At: at, State: d.State, Reason: d.Reason, Period: period, Exception: exception}
}
