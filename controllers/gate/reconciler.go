// Package gate reconciles Gates. It alone writes their status.
package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	runtimeCtrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
)

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gates/status,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Reconciler decides on Gates and writes their status. It never writes targets.
type Reconciler struct {
	// Client reads Gates from the cache and writes.
	client.Client
	// EventRecorder emits events on Gates, and on their targets about requests.
	kuberecorder.EventRecorder
	// Metrics are the metrics of Flux controllers.
	runtimeCtrl.Metrics

	// Clock is read once for each decision.
	Clock clock.PassiveClock
	// Decider decides on Gates.
	Decider *Decider
	// Calendars reads the calendars of Gates.
	Calendars *calendars.Reader
	// Selector finds targets.
	Selector *view.Selector
	// Locks reads GateLocks.
	Locks view.LockReader
	// Summary stores the outcomes of the targets, and Slots the targets that wait for a release slot.
	Summary *summary.Summary
	Slots   *rollout.Slots
	// Rollouts stores the targets of Gates that release in waves.
	Rollouts *rollout.Rollouts
	// Passes stores the passes of targets.
	Passes *rollout.Passes
	// Handlers enqueues the targets of a Gate.
	Handlers *enqueue.Handlers
	// GateMetrics are the metrics of Gates.
	GateMetrics *events.Metrics
	// Queues prioritizes a Gate whose close is due.
	Queues enqueue.Enqueuer
	// Backoff returns the delay of the next retry.
	Backoff workqueue.TypedRateLimiter[types.UID]

	// Gates reads and writes the Gates that are reconciled.
	Gates        *ownwrites.Client
	State        *State
	TargetEvents *events.Recorder
	Appliers     *Appliers
	// Background emits announcements.
	Background *Background
}

func (r *Reconciler) diagnostics() diagnostics {
	return diagnostics{r.Selector, r.State, r.Appliers, r.EventRecorder, r.GateMetrics}
}

func (r *Reconciler) announcer() announcer {
	return announcer{r.Selector, r.Summary, r.EventRecorder, r.Background}
}

func (r *Reconciler) eventRecorder() recorder {
	return recorder{r.EventRecorder, r.Selector.Targets}
}

// Reconcile decides on a Gate, and reports the progress of its targets.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	start := time.Now() //nolint:forbidigo // only measures the duration for the metrics

	obj := &v1alpha1.Gate{}
	if err := r.Gates.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.GateMetrics.Delete(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.State.add(obj, now)
	writer := newGateWriter(r.Gates, obj)
	defer func() {
		r.RecordDuration(ctx, obj, start)
	}()
	switch {
	case !obj.DeletionTimestamp.IsZero():
		return r.finalize(ctx, obj, writer)
	case obj.Spec.Suspend:
		ctrl.LoggerFrom(ctx).Info("Reconciliation is suspended for this object")
		r.Summary.StopAwaiting(summary.KeyFor(obj))
		return ctrl.Result{}, writer.suspended(ctx, obj, now)
	}
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.GateFinalizer) {
		if err := writer.addFinalizer(ctx); err != nil {
			return ctrl.Result{}, err
		}
		obj = writer.Base
	}
	result, err := r.reconcile(ctx, obj, writer, now)
	if err != nil { // controller-runtime ignores the result if there is an error
		return ctrl.Result{}, err
	}
	return result, nil
}

// reconcile decides on a Gate at an instant, and writes its status at most once. If the decision affects the targets, it enqueues them,
// and a later pass reports their progress. Otherwise, it reports the progress now. If the decision requires slow reads of dependencies,
// it writes new requests first.
func (r *Reconciler) reconcile(ctx context.Context, obj *v1alpha1.Gate, writer *gateWriter, now time.Time) (ctrl.Result, error) {
	p := &gatePass{Reconciler: r, before: obj, writer: writer}
	exceptions, err := view.ExceptionsFor(ctx, r.Client, client.ObjectKeyFromObject(obj))
	if err != nil {
		return ctrl.Result{}, err
	}
	if closed, err := p.closeFirst(ctx, exceptions, now); closed || err != nil {
		return ctrl.Result{RequeueAfter: time.Millisecond}, err
	}
	calendars, err := r.Calendars.For(ctx, obj, now)
	if err != nil { // the last decision in the status stays in force
		return ctrl.Result{}, err
	}
	p.snapshot = r.Calendars.Compiled.Snapshot(obj, calendars, exceptions...)
	p.decision = r.Decider.Decide(ctx, p.snapshot, now)
	if p.decision.Unread && !p.decision.AffectsTargets {
		if p.decision.IsNew {
			if err := p.writeDecision(ctx); err != nil {
				return ctrl.Result{}, err
			}
		}
		p.decision = r.Decider.decideWithDependencies(ctx, p.snapshot, p.decision)
	}
	if !p.decision.AffectsTargets {
		return p.report(ctx)
	}
	if err := p.writeDecision(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.requeueAfter(p.decision.Decided(), append(p.decision.Rechecks, now.Add(progressDelay)))}, nil
}

// progressDelay is the delay of the first progress report after a decision that affects the targets.
const progressDelay = time.Second

// requeueAfter returns the delay until the next edge or resync, counted from the current time, because the decision may have taken a
// while. It prioritizes a Gate that closes at that edge. Only the resync interval is jittered.
func (r *Reconciler) requeueAfter(obj *v1alpha1.Gate, edges []time.Time) time.Duration {
	now, resync := r.Clock.Now(), r.State.NextResync(obj)
	if due := slices.DeleteFunc(slices.Clone(edges), time.Time.IsZero); len(due) > 0 && Until(now, due) < Until(now, []time.Time{resync}) {
		r.Queues.PrioritizeGate(client.ObjectKeyFromObject(obj), classAt(obj, now.Add(Until(now, due)), r.Decider.ServerClock.Behind()))
	}
	return Until(now, append(edges, resync))
}

// classAt returns the class of a Gate at its next edge. The class is Hold if the Gate closes for any target at that edge, even if only by
// the clock of the API server, which may be ahead.
func classAt(g *v1alpha1.Gate, edge time.Time, behind time.Duration) queue.Class {
	edge = edge.Add(max(behind, 0))
	if next := g.Status.NextTransition; next != nil && next.State == v1alpha1.StateClosed && !next.At.After(edge) || gate.OverlaysClose(g, edge) {
		return queue.Hold
	}
	return queue.Change
}

// Until returns the time until the earliest non-zero instant, at least a millisecond.
func Until(now time.Time, edges []time.Time) time.Duration {
	edges = slices.DeleteFunc(edges, time.Time.IsZero)
	return max(slices.MinFunc(edges, time.Time.Compare).Sub(now), time.Millisecond)
}

// finalize removes the finalizer of a Gate under deletion once no target and no GateLock refers to it.
func (r *Reconciler) finalize(ctx context.Context, obj *v1alpha1.Gate, writer *gateWriter) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.GateFinalizer) {
		return ctrl.Result{}, nil
	}
	key := client.ObjectKeyFromObject(obj)
	held, err := r.Selector.Targets.HeldBy(ctx, key.String())
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, t := range held {
		if !view.NamesGate(&t.Unstructured, key.String()) && t.GetDeletionTimestamp().IsZero() {
			return waitFor(r.Summary, summary.KeyFor(obj))
		}
	}
	locked, err := r.Locks.Naming(ctx, key.String())
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(locked) > 0 {
		return waitFor(r.Summary, summary.KeyFor(obj))
	}
	if err := writer.removeFinalizer(ctx); err != nil {
		return ctrl.Result{}, err
	}
	r.GateMetrics.Delete(key)
	r.Gates.Evict(obj.UID)
	return ctrl.Result{}, nil
}

// waitFor returns an error if a failure prevents the deletion of a Gate. Otherwise it requeues the Gate.
func waitFor(t *summary.Summary, g summary.Gate) (ctrl.Result, error) {
	var all []error
	for _, f := range t.Failures(g) {
		all = append(all, errors.New(f.Key.String()+": "+f.Message))
	}
	if len(all) > 0 {
		return ctrl.Result{}, errors.Join(all...)
	}
	return ctrl.Result{RequeueAfter: progressDelay}, nil
}
