package gate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// RecordTransition notes in the status of a Gate since when it is what a decision says, and what
// decides on that now. It is since now if the state has changed, also if it has changed back
// while nobody looked.
func RecordTransition(g *v1alpha1.Gate, d Decision, now time.Time, changed bool) {
	last := g.Status.LastTransition
	at := metav1.NewTime(now)
	if last != nil && last.State == d.State && !changed {
		at = last.At
	}
	g.Status.LastTransition = &v1alpha1.Transition{At: at, State: d.State, Reason: d.Reason, By: d.By}
}
