package gate

import (
	"context"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/summary"
)

// measure sets the metrics of a Gate. Once all targets have reached the state of a scheduled transition, it observes the lag.
func (r *Reconciler) measure(ctx context.Context, obj *v1alpha1.Gate, s summary.Sums) {
	r.RecordReadiness(ctx, obj)
	r.RecordReconciling(ctx, obj)
	r.RecordStalled(ctx, obj)
	r.GateMetrics.Record(obj)
	if !s.IsSettled() || obj.Status.Release != nil && obj.Status.Release.NextAt != nil || gate.ReleasesInWaves(obj) {
		return
	}
	changed, due := r.State.takeChange(obj)
	if changed {
		r.eventRecorder().summary(obj, s, r.Clock.Now())
	}
	if due != nil {
		r.GateMetrics.RecordLag(due.State, r.Clock.Since(due.At.Time))
	}
}
