package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// gatePass is one reconciliation of a Gate.
type gatePass struct {
	*GateReconciler
	// before is the Gate before the pass, obj the copy whose status is changed.
	before, obj *v1alpha1.Gate
	writer      *gateWriter
	snapshot    *gate.Snapshot
	decision    decision
	effect      effect
	// now is when the pass began.
	now time.Time
	// recorded says that the status has the requests that were handled.
	recorded bool
}

// effect is the effect of a decision.
type effect struct {
	// isNew is true if the status must be written, changed if the state differs, and wakes if the targets must be enqueued.
	isNew, changed, wakes bool
}

// decide records a decision and its effect in the status.
func (p *gatePass) decide(ctx context.Context, s *gate.Snapshot, now time.Time) {
	p.snapshot, p.now = s, now
	p.decision = p.Decider.decide(ctx, p.obj, s, now)
	d := &p.decision
	report(p.obj, d.Decision)
	s.With(p.obj).RecordExceptions(d.at)
	changed := stateChanged(p.before, p.obj) || missed(p.before, *d)
	gate.RecordTransition(p.obj, d.Decision, d.at, changed)
	gate.RecordHistory(p.obj, d.Decision, d.handled, d.at, changed)
	d.proceeds = d.State == v1alpha1.StateOpened && verdict.HasWaves(p.obj) && !p.obj.Audits() && gate.NoteProceed(p.obj, d.at)
	p.effect = effectOf(p.before, p.obj, *d)
}

// effectOf returns the effect of a decision in the status of a Gate. If isNew is true, it also sets the conditions for progress, and
// observedGeneration unless d.err is set.
func effectOf(before, obj *v1alpha1.Gate, d decision) effect {
	e := effect{changed: stateChanged(before, obj), wakes: concerns(before, obj) || d.err == nil && !isCurrent(before)}
	e.isNew = e.wakes || e.changed || !isCurrent(before) || len(d.handled) > 0 || d.proceeds ||
		before.Status.Memory.LastHandledLine != obj.Status.Memory.LastHandledLine
	if !e.isNew {
		return e
	}
	if !conditions.IsStalled(obj) && (e.changed || !isCurrent(before)) { // Reconciling and Stalled exclude each other
		conditions.MarkReconciling(obj, meta.ProgressingReason, "%s", bringing(obj, d.State))
	}
	if d.err != nil { // both clocks are read again, also after a crash
		conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.TimeUnknownReason, "%s", d.err)
	} else {
		obj.Status.ObservedGeneration = obj.Generation
	}
	return e
}

// closeFirst closes a Gate on request without its calendars if reading them requires a request to the API server. It returns whether the
// Gate is closed, and must then be decided again with its calendars.
func (p *gatePass) closeFirst(ctx context.Context, exceptions []*v1alpha1.GateException, now time.Time) (bool, error) {
	if !ledger.ClosesByRequest(p.obj, now) || p.Calendars.atHand(p.obj, now) {
		return false, nil
	}
	p.decide(ctx, gate.NewSnapshot(p.obj, nil, exceptions...), now)
	if p.decision.State != v1alpha1.StateClosed {
		p.before.DeepCopyInto(p.obj)
		return false, nil
	}
	if err := p.persist(ctx); err != nil {
		return true, err
	}
	return true, p.writer.removeLines(ctx, p.before)
}

// write writes the decision and returns when to reconcile again. If the dependencies have not been read yet, which may take a while, new requests
// are recorded first.
func (p *gatePass) write(ctx context.Context) (ctrl.Result, error) {
	if p.effect.wakes || p.effect.isNew && !p.decision.looked {
		if err := p.persist(ctx); err != nil {
			return ctrl.Result{}, err
		}
	}
	if !p.effect.wakes {
		p.effect.isNew = p.effect.isNew && !p.recorded
		return p.report(ctx)
	}
	return ctrl.Result{RequeueAfter: p.requeueAfter(p.obj, append(p.decision.edges, p.now.Add(wakeDelay)))}, nil
}

// persist writes the status of a Gate, and then emits the events about the decision. In this order, a new request survives a crash, even if
// Flux removes the annotation.
func (p *gatePass) persist(ctx context.Context) error {
	d := &p.decision
	if due := p.before.Status.NextTransition; p.effect.changed && due != nil && due.State == d.State && !due.At.After(d.at) {
		p.memory.with(p.obj, func(m *remembered) { m.due = due })
	}
	if p.effect.wakes {
		p.Tally.Await(tallied(p.obj))
		p.memory.woke(p.obj, d.at)
	}
	if err := p.writer.status(ctx, p.obj); err != nil {
		return err
	}
	if p.effect.wakes {
		p.memory.with(p.obj, func(m *remembered) { m.decided = p.writer.base })
	}
	p.recorded = true
	if p.effect.isNew {
		p.notify(ctx)
	}
	return nil
}

// notify emits the events about a decision that is in the status.
func (p *gatePass) notify(ctx context.Context) {
	told := gateTeller{p.EventRecorder, p.Selector.Targets}
	told.requests(ctx, p.obj, p.decision.handled)
	p.GateMetrics.emergencyOpenings(p.obj, p.decision.handled)
	if isCurrent(p.obj) && !isCurrent(p.before) {
		told.ambiguities(p.obj, p.decision.at)
	}
	if p.effect.changed {
		p.memory.with(p.obj, func(m *remembered) { m.changed = true })
		told.announce(ctx, p.obj, p.decision.Decision, p.decision.at)
	}
}

// progress is the progress of the targets of a Gate.
type progress struct {
	outcome
	released
	found *accident
	edges []time.Time
	// complete is false if the sums are too low. The Gate is enqueued when they are complete.
	complete bool
}

// progress sets the progress of the targets in the status. At the resync interval, it enqueues all targets.
func (p *gatePass) progress(ctx context.Context) (done progress, err error) {
	before, obj, d := p.before, p.obj, p.decision
	report(obj, d.Decision)
	gate.RecordTransition(obj, d.Decision, d.at, false)
	v, asked := meta.ReconcileAnnotationValue(obj.GetAnnotations())
	if asked = asked && v != before.Status.LastHandledReconcileAt; asked {
		obj.Status.SetLastHandledReconcileRequest(v)
	}
	done.edges = slices.Clone(d.edges)
	if p.memory.isDue(obj, asked, d.at) || p.Tally.Sums(tallied(obj)).Awaits {
		if err := p.Events.wakeAll(ctx, obj); err != nil {
			return done, err
		}
	}
	done.outcome = p.outcomeOf(ctx, obj, d)
	done.released = releaser{p.Turns, p.Tally, p.Book, p.memory}.release(obj, done.sums, d.State, d.at)
	done.told = append(done.told, tellStop(before, obj, len(done.told) > 0)...)
	done.edges = append(done.edges, done.wake)
	if done.complete = p.Tally.IsComplete(); !done.complete {
		return done, nil
	}
	s := done.sums
	obj.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{
		Total: s.Total, Held: s.Held, WouldHold: s.WouldHold, SuspendedByOthers: s.Foreign, Exempt: s.Exempt, Pending: s.Pending, Failed: s.Failed,
	}}
	gate.RecordPasses(obj, p.Passes.entries(tallied(obj)))
	obj.Status.Targets.Failures = newest(done.failures, before.Status, d.at)
	if done.found = p.accidents.look(ctx, before, obj, s, d.at); done.found != nil {
		done.edges, done.empty = append(done.edges, done.found.again), done.found.message
	}
	summarize(obj, d, done.outcome)
	return done, nil
}

// report writes the decision and the progress of the targets. If the progress is unknown, it writes the decision alone.
func (p *gatePass) report(ctx context.Context) (ctrl.Result, error) {
	obj, decided := p.obj, p.obj.Status.DeepCopy()
	p.Decider.lookLater(ctx, obj, p.snapshot, &p.decision)
	f := p.foreteller.look(obj, p.snapshot, &p.decision)
	done, err := p.progress(ctx)
	if err != nil || !done.complete {
		p.Turns.Recall(tallied(obj), done.called)
		decided.DeepCopyInto(&obj.Status)
		return ctrl.Result{RequeueAfter: p.requeueAfter(obj, done.edges)}, errors.Join(err, p.persist(ctx))
	}
	at := p.mayWrite(obj, done.sums, p.decision.at)
	if mayWait := !p.effect.isNew && f.IsSilent() && p.decision.err == nil && len(done.called)+len(done.told) == 0 && !failsNow(p.before, done.sums); mayWait && !at.IsZero() {
		p.recorded = true
		return ctrl.Result{RequeueAfter: p.requeueAfter(obj, append(done.edges, at))}, nil
	}
	obj.Status.ObservedGeneration = obj.Generation
	if err := p.persist(ctx); err != nil {
		p.Turns.Recall(tallied(obj), done.called)
		return ctrl.Result{}, err
	}
	p.Turns.Noted(tallied(obj), done.n)
	p.Events.Wake.Targets(queue.Release, done.called...) // those that have a release slot
	p.foreteller.start(ctx, obj, f, p.decision.at)
	gateTeller{p.EventRecorder, p.Selector.Targets}.waves(ctx, obj, done.told, p.decision.at)
	p.accidents.note(p.before, obj, done.found, p.decision.at)
	p.measure(ctx, obj, done.sums)
	if done.err == nil {
		p.Backoff.Forget(backoffOf(obj.UID))
		return ctrl.Result{RequeueAfter: p.requeueAfter(obj, done.edges)}, nil
	}
	// If this returned the error, the queue would lose the time of the next edge.
	ctrl.LoggerFrom(ctx).Error(done.err, "Some targets have not reached the desired state")
	return ctrl.Result{RequeueAfter: min(p.requeueAfter(obj, done.edges), p.Backoff.When(backoffOf(obj.UID)))}, nil
}
