// Package controllers loads Gates, lets internal/gate decide, applies the
// decision to the targets and reports it. It is the only writer of targets and
// of conditions.
package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kuberecorder "k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimeCtrl "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/patch"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gates/status,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// GateReconciler reconciles Gates.
type GateReconciler struct {
	// Client reads Gates from the cache and writes.
	client.Client
	// EventRecorder for events on Gates and on targets.
	kuberecorder.EventRecorder
	// Metrics are those that all controllers of Flux have.
	runtimeCtrl.Metrics

	// APIReader reads from the API server.
	APIReader client.Reader
	// Sharded says that the cache has the Gates of one shard only.
	Sharded bool
	// AllGates reads the metadata of the Gates of all shards from a cache, nil unless
	// Sharded.
	AllGates client.Reader
	// Targets reads targets.
	Targets TargetReader
	// Locks are written before targets are.
	Locks *Locks
	// Clock is read once for each decision.
	Clock clock.PassiveClock
	// ServerTime asks the API server for the time, cut off to the second. A Gate opens
	// only if it is open at that time, too. Nil means that Clock alone counts.
	ServerTime func(context.Context) (time.Time, error)
	// AllowCrossNamespaceRefs lets a Gate hold and watch objects of other namespaces, and
	// objects name a Gate of another one. Without it, what one namespace may be edited for
	// reaches no other.
	AllowCrossNamespaceRefs bool
	// Namespaces are those whose Gates are reconciled, none means all.
	Namespaces map[string]ctrlcache.Config
	// WritesAtOnce bounds the targets of one Gate that are written at the same time, 16
	// if zero. The rate is bounded by --kube-api-qps and --kube-api-burst.
	WritesAtOnce int
	// Backoff says when to try failed targets again.
	Backoff workqueue.TypedRateLimiter[ctrl.Request]
	// GateMetrics are the metrics of Gates.
	GateMetrics *GateMetrics

	// releases has, by Gate, the ReleaseStatus that was written last.
	releases sync.Map
	// sightings has, by Gate, what was seen of the objects that it watches.
	sightings sync.Map
	// versions are those of Gates.
	versions versions
}

// gates returns the client of the Gates that are reconciled.
func (r *GateReconciler) gates() client.Client { return ownWrites{r.Client, r.APIReader, &r.versions} }

// Reconcile brings the targets of a Gate to what the Gate says at this instant.
func (r *GateReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	start := time.Now() //nolint:forbidigo // measures this reconciliation for the metrics, decides nothing

	obj := &v1alpha1.Gate{}
	if req.Name == "" || !r.watches(req.Namespace) {
		return r.reconcileMissing(ctx, req.NamespacedName, now)
	}
	if err := r.gates().Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return r.reconcileMissing(ctx, req.NamespacedName, now)
		}
		return ctrl.Result{}, err
	}
	r.versions.reconciles(obj)
	patcher := patch.NewSerialPatcher(obj, r.gates())
	defer func() {
		r.RecordDuration(ctx, obj, start)
	}()

	if !obj.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, obj, patcher, now)
	}
	if obj.Spec.Suspend {
		ctrl.LoggerFrom(ctx).Info("Reconciliation is suspended for this object")
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(obj, v1alpha1.GateFinalizer) {
		if err := patcher.Patch(ctx, obj, patchOptions...); err != nil {
			return ctrl.Result{}, err
		}
	}
	outcome, delay, err := r.reconcile(ctx, obj, patcher, now)
	if err != nil {
		// A decision that was not written has not been told: it is made once more.
		return ctrl.Result{}, err
	}
	if outcome.over {
		return ctrl.Result{RequeueAfter: delay}, nil
	}
	failed := outcome.err()
	if err := r.summarize(ctx, obj, patcher, failed); err != nil {
		return ctrl.Result{}, err
	}
	if failed == nil {
		r.Backoff.Forget(req)
		return ctrl.Result{RequeueAfter: delay}, nil
	}
	// An error returned would make the queue forget when the next edge is.
	ctrl.LoggerFrom(ctx).Error(failed, "Not every target is as the gate wants it")
	return ctrl.Result{RequeueAfter: min(delay, r.Backoff.When(req))}, nil
}

// reconcile decides and makes it so. The decision is in the status before the
// first target is written: what has been requested survives a crash from here
// on, even if Flux removes the annotation, and no other Gate takes this one for
// closed until all of its targets are released.
func (r *GateReconciler) reconcile(ctx context.Context, obj *v1alpha1.Gate, patcher *patch.SerialPatcher, now time.Time) (*outcomes, time.Duration, error) {
	exceptions, err := exceptionsOf(ctx, r.Client, client.ObjectKeyFromObject(obj))
	if err != nil {
		return &outcomes{}, 0, err
	}
	before := obj.DeepCopy()
	stored := &before.Status
	v := r.decide(ctx, obj, exceptions, now)
	report(obj, v.Decision)
	gate.RecordExceptions(obj, exceptions, v.at)
	// What keeps a Gate from opening keeps it closed: that it was to open is no edge.
	kept := v.Reason == v1alpha1.TimeUnknownReason || v.Reason == v1alpha1.DependencyNotReadyReason
	changed, missed := stateChanged(before, obj), !kept && missedEdges(before, v.State, v.at)
	gate.RecordTransition(obj, v.Decision, v.at, changed || missed)
	if status := obj.Status.Machines; status != nil &&
		(before.Generation != before.Status.ObservedGeneration || (changed || missed) && v.State == v1alpha1.StateOpened) {
		status.Stopped = nil
	}
	if changed || before.Generation != before.Status.ObservedGeneration || len(v.handled) > 0 {
		if len(v.Errors) == 0 { // Reconciling and Stalled exclude each other
			conditions.MarkReconciling(obj, meta.ProgressingReason, "Bringing the targets to state %s", v.State)
		}
		options := patchOptions
		if v.err == nil { // else both clocks are asked once more after a crash
			options = withGeneration
		}
		if err := patcher.Patch(ctx, obj, options...); err != nil {
			return &outcomes{}, 0, err
		}
		stored = &obj.Status
	}
	r.recordRequests(ctx, obj, v.handled)
	if changed {
		r.announce(ctx, obj, v.Decision, v.at)
	}

	stands := r.standing(obj, stored, v.State)
	outcome := r.assert(ctx, obj, v.Decision, stands, changed || missed, now)
	if outcome.over {
		ctrl.LoggerFrom(ctx).Info("Gate is not to be " + string(v.State) + " any longer, although not every target is: it is decided anew")
		return outcome, time.Millisecond, nil
	}
	stands.remembered(&obj.Status)
	if v.watched == nil {
		v.watched, _ = r.observeWatched(ctx, obj, v.at, false)
		v.decide(gate.Decide(obj, v.at, exceptions...))
		report(obj, v.Decision)
		gate.RecordTransition(obj, v.Decision, v.at, false)
	}
	outcome.merge(v.watched)
	outcome.undecided = v.err
	r.refreshMachines(ctx, obj, patcher, v.Decision, outcome, now)
	obj.Status.Targets = outcome.counts()
	obj.Status.Failures = outcome.report(before.Status, now)
	r.record(before, obj, now)
	return outcome, r.requeueAfter(obj, append(v.edges, outcome.recheck)), nil
}

// missedEdges returns whether the Gate changed its state and changed it back
// while nobody looked.
func missedEdges(before *v1alpha1.Gate, state v1alpha1.State, now time.Time) bool {
	due := before.Status.NextTransition
	return due != nil && !due.At.After(now) && due.State != state
}

// requeueAfter is exact at the next change: jitter is for the interval alone.
// The decision took a while, so that the delay is counted from the time it is
// now.
func (r *GateReconciler) requeueAfter(obj *v1alpha1.Gate, edges []time.Time) time.Duration {
	delay := jitter.JitteredIntervalDuration(obj.GetInterval())
	now := r.Clock.Now()
	for _, at := range edges {
		if !at.IsZero() {
			delay = min(delay, at.Sub(now))
		}
	}
	return max(delay, time.Millisecond)
}

// finalize releases what a Gate under deletion holds. The finalizer stays until
// everything is released.
func (r *GateReconciler) finalize(ctx context.Context, obj *v1alpha1.Gate, patcher *patch.SerialPatcher, now time.Time) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.GateFinalizer) {
		return ctrl.Result{}, nil
	}
	key := client.ObjectKeyFromObject(obj)
	want := order{now: now, locks: r.Locks.Put(ctx, key.String(), nil), Want: target.Want{Gate: key.String()}}
	_, outcome, err := r.settleWithout(ctx, key, want)
	if err != nil {
		return ctrl.Result{}, err
	}
	governed, _ := r.selectTargets(ctx, obj, &outcomes{})
	nobodys := slices.DeleteFunc(slices.Clone(governed.targets), func(t *target.Object) bool {
		return !heldByNobody(&t.Unstructured) || slices.Contains(namedBy(&t.Unstructured), key.String())
	})
	outcome.merge(r.settleAll(ctx, nobodys, want))
	if err := outcome.err(); err != nil {
		return ctrl.Result{}, err
	}
	if outcome.awaiting > 0 {
		return ctrl.Result{RequeueAfter: awaitsFor}, nil
	}
	if err := r.forgetActivations(ctx, governed.targets, key.String(), now); err != nil {
		return ctrl.Result{}, err
	}
	controllerutil.RemoveFinalizer(obj, v1alpha1.GateFinalizer)
	r.GateMetrics.Delete(key)
	return ctrl.Result{}, patcher.Patch(ctx, obj, patchOptions...)
}
