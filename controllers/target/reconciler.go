// Package target reconciles targets. It alone writes targets and their conditions.
package target

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Reconciler holds and releases targets, and sets their conditions.
type Reconciler struct {
	// Client writes targets.
	client.Client
	// EventRecorder emits events on Certificates that are activated.
	kuberecorder.EventRecorder
	// Live reads from the API server.
	Live client.Reader
	// Versions tracks the versions of targets that this process has written.
	Versions *ownwrites.Versions[target.Key]
	// Clock is read once for each decision.
	Clock clock.PassiveClock
	// Targets reads targets.
	Targets view.TargetReader
	// Gates looks up the Gates of a target.
	Gates *view.GateIndex
	// Locks reads GateLocks.
	Locks view.LockReader
	// Summary counts the outcomes of targets.
	Summary *summary.Summary
	// Slots stores the targets that wait for a release slot.
	Slots *rollout.Slots
	// Rollouts stores the targets of Gates that release in waves.
	Rollouts *rollout.Rollouts
	// Queues enqueues a Gate when a target waits for a release slot.
	Queues enqueue.Enqueuer
	// Passes stores the passes in the history of Gates.
	Passes *rollout.Passes

	// TargetEvents emits the events on targets.
	TargetEvents *events.Recorder
	// Caches hold the state of targets.
	Caches []ownwrites.Evictor[target.Key]

	slots     releaseSlots
	writer    *writer
	activator *activator
}

// New returns a Reconciler with the dependencies of r.
func New(r Reconciler) *Reconciler {
	r.slots = releaseSlots{r.Slots, r.Queues}
	r.writer = &writer{Client: r.Client, Live: r.Live, Versions: r.Versions}
	r.activator = &activator{Client: r.Client, EventRecorder: r.EventRecorder, Live: r.Live, Gates: r.Gates, Clock: r.Clock}
	return &r
}

// Reconcile holds or releases a target for all of its Gates in one write. The next pass sets the conditions of the target.
func (r *Reconciler) Reconcile(ctx context.Context, key target.Key) (ctrl.Result, error) {
	now := r.Clock.Now()
	r.Summary.StartReconcile(key)
	obj, isBehind, err := view.FetchTarget(ctx, r.Targets, r.Versions, key)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case isBehind:
		return enqueue.RequeueUrgent(r.Queues, key, view.CacheDelay), nil
	case obj == nil:
		r.evict(key)
		return ctrl.Result{}, nil
	}
	res, err := r.pass(ctx, obj, now)
	for retry := 0; IsOutdated(err) && retry < ownwrites.Retries; retry++ {
		if obj, err = view.RereadTarget(ctx, r.writer.Live, obj); err != nil {
			res, err = res.failed(v1alpha1.ReadFailedReason, err)
			break
		}
		if obj == nil {
			return ctrl.Result{}, nil // the target was deleted, and its event follows
		}
		now = r.Clock.Now()
		res, err = r.pass(ctx, obj, now)
	}
	if err == nil || res.Failure != nil {
		r.recordOutcome(key, &res, now)
	}
	if err != nil {
		r.Queues.Prioritize(key)
		return ctrl.Result{}, err
	}
	return r.result(key, res), nil
}

// errSlotGone means that a release slot was withdrawn between the ruling and the write.
var errSlotGone = errors.New("the release slot of the target is gone")

// IsOutdated returns whether a pass failed because the situation has changed in the meantime, so that the pass must be repeated.
func IsOutdated(err error) bool { return apierrors.IsConflict(err) || errors.Is(err, errSlotGone) }

// pass reconciles a target once: it calls fetch and Rule, writes the target, and emits events. A write triggers another pass, which sets
// the conditions.
func (r *Reconciler) pass(ctx context.Context, obj *target.Object, now time.Time) (Result, error) {
	gates, err := r.Gates.For(ctx, obj, now)
	if err != nil {
		return Result{}, err
	}
	ruling, err := r.Rule(ctx, obj, gates, now)
	res := Result{Result: summary.Result{Ruling: ruling, Gates: gates}}
	if err != nil {
		return res.failed(v1alpha1.ReadFailedReason, err)
	}
	return r.Apply(ctx, res)
}

// Apply carries out a final ruling on a target. It writes the target, emits events and sets conditions.
func (r *Reconciler) Apply(ctx context.Context, res Result) (Result, error) {
	ruling := &res.Ruling
	r.slots.await(ruling)
	if ruling.Step.Write {
		if !r.slots.take(ruling) {
			return res, errSlotGone
		}
		if err := r.write(ctx, ruling); err != nil {
			return res.failed(v1alpha1.WriteFailedReason, err)
		}
		res.Wrote = true
	}
	r.slots.leave(&res)
	r.TargetEvents.Notify(&res.Result)
	if ruling.Report {
		return r.report(ctx, res)
	}
	return res, nil
}

// Rule returns the final ruling on a target. It fetches only the facts that the ruling depends on.
func (r *Reconciler) Rule(ctx context.Context, obj *target.Object, gates []verdict.Gate, now time.Time) (verdict.Ruling, error) {
	key := target.KeyOf(obj)
	s := verdict.Situation{
		Object: obj, Definition: r.Targets.Definition(key.GroupKind), Gates: gates, Now: now, Sharded: r.Gates.AllGates != nil, Unknown: verdict.Lockers | verdict.Live | verdict.Slots,
	}
	s.Reporter = s.Sharded && (r.Versions.IsOwn(key, obj.GetResourceVersion()) || !r.Summary.IsComplete())
	for {
		ruling := verdict.Rule(s)
		if ruling.Needs == 0 {
			return ruling, nil
		}
		if err := r.fetch(ctx, &s, ruling.Needs); err != nil {
			return ruling, err
		}
	}
}

// fetch adds a fact to the situation of a target.
func (r *Reconciler) fetch(ctx context.Context, s *verdict.Situation, fact verdict.Facts) (err error) {
	switch fact {
	case verdict.Lockers:
		s.Lockers, err = r.lockers(ctx, s.Object, s.Now)
	case verdict.Live:
		if s.Live, err = r.Gates.Live(ctx, s.Object, s.Now); s.Live == nil {
			s.Live = []verdict.Gate{} // nil means that they were not read
		}
	case verdict.Slots:
		s.NoSlot = r.slots.missing(s.Object, s.Gates)
	}
	s.Unknown &^= fact
	return err
}

// write performs the write of a ruling.
func (r *Reconciler) write(ctx context.Context, ruling *verdict.Ruling) error {
	obj, step := ruling.Object, ruling.Step
	lever := ruling.Plan.Lever
	if lever == nil {
		lever = target.Lever(obj)
	}
	if step.Claim {
		claimed, err := r.writer.apply(ctx, obj, holdConfig{ruling.Observed.HeldBy, target.Lever(obj), ruling.Observed.PassAnnotations()})
		if err != nil {
			return err
		}
		obj = claimed
	}
	if !step.Hold {
		lever = nil
	}
	_, err := r.writer.apply(ctx, obj, holdConfig{step.Names, lever, step.PassAnnotations()})
	return err
}

// lockers returns the names of the Gates whose locks cover the target, in the GateLock of its namespace or of all namespaces.
func (r *Reconciler) lockers(ctx context.Context, obj *target.Object, now time.Time) ([]string, error) {
	gateLock, err := r.Locks.Lock(ctx, obj.GetNamespace())
	if gateLock == nil || err != nil {
		return nil, err
	}
	o := lock.Object{
		Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Labels: obj.GetLabels(), Gates: verdict.NamedBy(&obj.Unstructured),
		Initial: !verdict.InitialUntil(&obj.Unstructured, now).IsZero(),
	}
	all, err := r.Locks.Lock(ctx, v1alpha1.AnyName)
	if err != nil {
		return nil, err
	}
	spans := all != nil && len(all.Spec.Selectors) > 0 && obj.GetNamespace() != all.Namespace
	if spans || len(gateLock.Spec.Overlays) > 0 {
		if o.NamespaceLabels, err = r.Gates.Labels(ctx, obj.GetNamespace()); err != nil {
			return nil, err
		}
	}
	lockers := lock.Lockers(&gateLock.Spec, o)
	if spans {
		lockers = append(lockers, lock.Selecting(&all.Spec, o)...)
	}
	return lockers, nil
}

// report sets the conditions of a target, and activates its certificate if that is due.
func (r *Reconciler) report(ctx context.Context, res Result) (Result, error) {
	obj, now := res.Ruling.Object, res.Ruling.Now
	var activated *metav1.Condition
	var failed error
	if verdict.Activates(obj) && slices.ContainsFunc(res.Gates, verdict.Gate.Covers) {
		a := r.activator.run(ctx, obj, now)
		activated = a.condition()
		res.NotLaterThan(a.decision.Recheck)
		res.Failure, failed = a.failure(), a.err
	}
	if r.Targets.Definition(target.KeyOf(obj).GroupKind).NoConditions {
		return res, failed // the kind cannot store our conditions; the events have been emitted
	}
	list := res.Ruling.Conditions(activated)
	changed, err := r.writer.conditions(ctx, obj, list, metav1.NewTime(now))
	switch {
	case apierrors.IsConflict(err):
		return res, err
	case err != nil:
		return res.failed(v1alpha1.StatusWriteFailedReason, err)
	case changed:
		r.TargetEvents.Certified(obj, list)
		r.TargetEvents.Initial(&res.Ruling)
	}
	return res, failed
}

// result returns when to reconcile a target again.
func (r *Reconciler) result(key target.Key, res Result) ctrl.Result {
	res.NotLaterThan(res.Ruling.Recheck)
	if res.At.IsZero() {
		return ctrl.Result{}
	}
	return enqueue.RequeueUrgent(r.Queues, key, res.At.Sub(r.Clock.Now()))
}

// evict evicts a target that was deleted.
func (r *Reconciler) evict(key target.Key) {
	for _, cache := range r.Caches {
		cache.Evict(key)
	}
	r.rolloutRecorder().Record(key, nil, nil)
}
