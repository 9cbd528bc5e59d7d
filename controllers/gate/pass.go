package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
)

// gatePass is one reconciliation of a Gate.
type gatePass struct {
	*Reconciler
	// before is the Gate before the pass.
	before   *v1alpha1.Gate
	writer   *gateWriter
	snapshot *gate.Snapshot
	decision decision
	// written is true if the decision has been written to the status.
	written bool
}

// after returns a copy of the Gate with the status s.
func (p *gatePass) after(s v1alpha1.GateStatus) *v1alpha1.Gate {
	g := *p.before
	g.Status = s
	return &g
}

// closeFirst closes a Gate on request without reading its calendars, if reading them would send a request to the API server. It returns
// whether it closed the Gate. If so, the caller must decide again with the calendars.
func (p *gatePass) closeFirst(ctx context.Context, exceptions []*v1alpha1.GateException, now time.Time) (bool, error) {
	if !ledger.ClosesByRequest(p.before, now) || p.Calendars.IsCached(p.before, now) {
		return false, nil
	}
	p.decision = p.Decider.Decide(ctx, gate.NewSnapshot(p.before, nil, exceptions...), now)
	if p.decision.State != v1alpha1.StateClosed {
		return false, nil
	}
	return true, p.writeDecision(ctx)
}

// writeDecision writes the decision without the progress of the targets, and emits the events about the decision.
func (p *gatePass) writeDecision(ctx context.Context) error {
	after := p.after(p.decision.Status(nil))
	if err := p.write(ctx, after); err != nil {
		return err
	}
	p.notifyDecision(ctx, after)
	return p.writer.removeLines(ctx, p.before)
}

// write writes the status of a Gate. Events are emitted afterwards, so that a new request survives a crash even if Flux removes its
// annotation.
func (p *gatePass) write(ctx context.Context, after *v1alpha1.Gate) error {
	d := p.decision
	if due := p.before.Status.NextTransition; d.Changed && due != nil && due.State == d.State && !due.At.After(d.At) {
		p.State.recordDue(p.before, due)
	}
	if d.AffectsTargets {
		p.Summary.Await(summary.KeyFor(after))
		p.State.StartDecision(after, d.At)
	}
	if err := p.writer.WriteStatus(ctx, after); err != nil {
		return err
	}
	if d.AffectsTargets {
		p.State.recordDecision(p.writer.Base)
	}
	return nil
}

// notifyDecision emits the events about a new decision. Later calls do nothing.
func (p *gatePass) notifyDecision(ctx context.Context, after *v1alpha1.Gate) {
	d := p.decision
	if p.written || !d.IsNew {
		return
	}
	p.written = true
	recorder := p.eventRecorder()
	recorder.requests(ctx, after, d.Handled)
	p.GateMetrics.EmergencyOpenings(after, d.Handled)
	if gate.IsCurrent(after) && !gate.IsCurrent(p.before) {
		recorder.ambiguities(after, d.At)
	}
	recorder.overlays(ctx, p.before, after, d.At)
	if d.Changed {
		p.State.recordChange(after)
		recorder.announce(ctx, after, d.Decision, d.At)
	}
}

// targetProgress is the progress of the targets of a Gate, with its consequences.
type targetProgress struct {
	gate.Progress
	released
	sums     summary.Sums
	forecast gate.Forecast
	found    *findings
	// rechecks are the times at which to reconcile again.
	rechecks []time.Time
	// complete is false if not all targets have been counted yet. The Gate is enqueued when they have been.
	complete bool
}

// progress collects the progress of the targets. At the resync interval, it enqueues all targets.
func (p *gatePass) progress(ctx context.Context) (*targetProgress, error) {
	d, obj := p.decision, p.decision.Decided()
	t := &targetProgress{forecast: p.announcer().forecast(obj, p.snapshot, d.At)}
	t.rechecks = append(slices.Clone(d.Rechecks), t.forecast.Next)
	v, requested := meta.ReconcileAnnotationValue(obj.GetAnnotations())
	if requested = requested && v != obj.Status.LastHandledReconcileAt; requested {
		t.HandledReconcileAt = v
	}
	if p.State.isDue(obj, requested, d.At) || p.Summary.Sums(summary.KeyFor(obj)).Awaits {
		if err := p.Handlers.EnqueueAll(ctx, obj); err != nil {
			return t, err
		}
	}
	t.sums = p.Summary.Sums(summary.KeyFor(obj))
	uncounted := int64(0)
	t.Failures, uncounted, t.Err = p.targetFailures(ctx, obj, d)
	t.sums.Failed += uncounted
	t.released = releaser{p.Slots, p.Summary, p.Rollouts, p.State}.release(obj, t.sums, d.At)
	t.rechecks = append(t.rechecks, t.recheck)
	if t.complete = p.Summary.IsComplete(); !t.complete {
		return t, nil
	}
	t.Targets, t.Settled, t.Announced = targetCounts(t.sums), t.sums.IsSettled(), t.forecast.Announced
	t.Passes, t.Release, t.Stop = p.Passes.Entries(obj.UID), t.status, t.stop
	if t.found = p.diagnostics().check(ctx, p.before, obj, t.sums, d.At); t.found != nil {
		t.rechecks = append(t.rechecks, t.found.recheck)
		t.Unmatched, t.Applier = t.found.message, t.found.held
	}
	return t, nil
}

// report writes the decision with the progress of the targets, and emits the events about it. If the progress is unknown, it writes only
// the decision. Writes that change only the progress are rate-limited.
func (p *gatePass) report(ctx context.Context) (ctrl.Result, error) {
	t, err := p.progress(ctx)
	if err != nil || !t.complete {
		p.Slots.Recall(p.before.UID, t.granted)
		return ctrl.Result{RequeueAfter: p.requeueAfter(p.decision.Decided(), t.rechecks)}, errors.Join(err, p.writeDecision(ctx))
	}
	after := p.after(p.decision.Status(&t.Progress))
	events := releaseEvents(p.before, after, t.waves)
	at := p.mayWrite(after, t.sums, p.decision.At)
	isUrgent := p.decision.IsNew && !p.written || !t.forecast.IsEmpty() || p.decision.Err != nil || len(t.granted)+len(events) > 0 || failsNow(p.before, t.sums)
	if !at.IsZero() && !isUrgent {
		return ctrl.Result{RequeueAfter: p.requeueAfter(after, append(t.rechecks, at))}, p.writer.removeLines(ctx, p.before)
	}
	if err := p.write(ctx, after); err != nil {
		p.Slots.Recall(after.UID, t.granted)
		return ctrl.Result{}, err
	}
	p.Slots.Recorded(after.UID, t.n)
	p.Handlers.Queues.Targets(queue.Release, t.granted...) // targets with a release slot
	p.notifyDecision(ctx, after)
	p.announcer().start(ctx, after, t.forecast, p.decision.At)
	p.eventRecorder().waves(ctx, after, events, p.decision.At)
	p.diagnostics().report(p.before, after, t.found, p.decision.At)
	p.measure(ctx, after, t.sums)
	return p.retry(ctx, after, t), p.writer.removeLines(ctx, p.before)
}

// retry returns when to reconcile a Gate again, which is sooner after a failure. It returns no error, because the queue would then drop
// the time of the next transition.
func (p *gatePass) retry(ctx context.Context, after *v1alpha1.Gate, t *targetProgress) ctrl.Result {
	next := p.requeueAfter(after, t.rechecks)
	if t.Err == nil {
		p.Backoff.Forget(after.UID)
		return ctrl.Result{RequeueAfter: next}
	}
	ctrl.LoggerFrom(ctx).Error(t.Err, "some targets have not reached the desired state")
	return ctrl.Result{RequeueAfter: min(next, p.Backoff.When(after.UID))}
}
