package verdict

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// InitialUntil returns the latest end of the initial reconciliation of a target that Gates may allow. It returns zero if that time has
// passed, if the target has been reconciled successfully, or if that is unknown.
func InitialUntil(obj *unstructured.Unstructured, now time.Time) time.Time {
	until := obj.GetCreationTimestamp().Add(v1alpha1.MaxInitial)
	if !now.Before(until) || !target.IsInitial(&target.Object{Unstructured: *obj}) {
		return time.Time{}
	}
	return until.UTC()
}

// AllowsInitial returns whether a Gate allows the initial reconciliation of its targets while it is closed. An invalid spec allows nothing.
func AllowsInitial(g *v1alpha1.Gate) bool {
	return g.Spec.InitialReconciliation == v1alpha1.InitialAllow && !IsInvalid(g)
}

// initially returns the effect of a Gate that allows initial reconciliations: while it is closed, it is open for a target that has never
// been reconciled successfully. If a user has resumed the held target and the Gate permits that, nothing changes, because the resumption
// lasts longer.
func (g Gate) initially(obj *unstructured.Unstructured, now time.Time) Gate {
	until := InitialUntil(obj, now)
	resumed := func() bool {
		t := &target.Object{Unstructured: *obj}
		return g.respects() && slices.Contains(HeldBy(obj), g.Name) && target.Of(obj).Observe(t, Us) == target.Free
	}
	switch {
	case until.IsZero():
	case g.Audits && g.Would == Closed:
		g.Would, g.Initial = Open, until
	case !g.Audits && g.Effect == Closed && !resumed():
		g.Effect, g.Initial = Open, until
	}
	return g
}

// IsInitial returns whether a closed Gate does not hold the target because it allows the initial reconciliation.
func (g Gate) IsInitial() bool { return !g.Audits && !g.Initial.IsZero() }
