// Package gatedsource reconciles GatedSources. It alone writes their status and their pinned sources.
package gatedsource

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// maxPromotionRounds bounds the rounds of one reconciliation of a GatedSource. A promotion takes four rounds, and each conflict takes
	// one more.
	maxPromotionRounds = 8
)

// Reconciler moves the pinned sources of GatedSources while their Gates are open, and writes the status of GatedSources. To the Gates,
// GatedSources are targets that are held without a write.
type Reconciler struct {
	// Client writes GatedSources and pinned sources.
	client.Client
	// EventRecorder emits events on GatedSources.
	kuberecorder.EventRecorder
	// Live reads from the API server.
	Live client.Reader
	// Versions tracks the versions of targets and GatedSources that this process has written.
	Versions *ownwrites.Versions[target.Key]
	// Clock is read once for each round.
	Clock clock.PassiveClock
	// Targets reads GatedSources and sources.
	Targets view.TargetReader
	// Gates looks up the Gates of a GatedSource.
	Gates *view.GateIndex
	// Summary counts the outcomes for the Gates. Slots stores the GatedSources that wait for a release slot.
	Summary *summary.Summary
	Slots   *rollout.Slots
	// Queues enqueues Gates and GatedSources.
	Queues enqueue.Enqueuer
	// Stamped returns whether the API server stamps approvers.
	Stamped func(context.Context) (bool, error)
	// Shard selects the GatedSources of this process by their labels.
	Shard labels.Selector
	// GateMetrics includes the metrics of GatedSources.
	GateMetrics *events.Metrics

	// TargetEvents counts the events on targets and GatedSources.
	TargetEvents *events.Recorder
	// Rollout records the GatedSources that are released in waves.
	Rollout rollout.Recorder
	// Caches hold the state of GatedSources.
	Caches []ownwrites.Evictor[target.Key]

	writer *writer
}

// New returns a Reconciler with the dependencies of r.
func New(r Reconciler) *Reconciler {
	r.writer = &writer{r.Client, r.Live, r.Versions}
	if r.Shard == nil {
		r.Shard = labels.Everything()
	}
	return &r
}

// TargetKey returns the key of a GatedSource among the targets.
func TargetKey(name types.NamespacedName) target.Key {
	return target.Key{GroupKind: target.GatedSource, NamespacedName: name}
}

// Reconcile promotes a GatedSource as far as its Gates permit, and records the outcome for the Gates.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := TargetKey(req.NamespacedName)
	r.Summary.StartReconcile(key)
	obj, isBehind, err := view.FetchTarget(ctx, r.Targets, r.writer.Versions, key)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case isBehind:
		return enqueue.RequeueUrgent(r.Queues, key, view.CacheDelay), nil
	case obj == nil:
		r.evict(key)
		return ctrl.Result{}, nil
	case !r.Shard.Matches(labels.Set(obj.GetLabels())):
		r.report(key, &promotionState{now: r.Clock.Now()})
		return ctrl.Result{}, nil
	}
	s, err := r.promote(ctx, obj)
	if errors.Is(err, view.ErrNotRead) {
		s.NotLaterThan(s.now.Add(view.CacheDelay))
		err = nil
	}
	if err == nil || s.failure != nil {
		r.report(key, s)
	}
	if err != nil {
		r.Queues.Prioritize(key)
		return ctrl.Result{}, err
	}
	if next := s.nextCheck(r.isSharded()); !next.IsZero() {
		return enqueue.RequeueUrgent(r.Queues, key, next.Sub(r.Clock.Now())), nil
	}
	return ctrl.Result{}, nil
}

// promote repeats fetch, decide and write until nothing is left to write. The first round reads from the cache. Irreversible steps are
// decided based on live reads.
func (r *Reconciler) promote(ctx context.Context, obj *target.Object) (s *promotionState, err error) {
	live := false
	for range maxPromotionRounds {
		if s, err = r.fetch(ctx, obj, live); err != nil {
			return s, err
		}
		r.decide(s, live)
		acts := s.step.Acts()
		if live || !acts {
			err = r.write(ctx, s)
		}
		switch {
		case err != nil && !ownwrites.Raced(err):
			return s, err
		case err == nil && !acts:
			r.leaveSlots(s)
			return s, nil
		}
		live = live || acts
		latest, readErr := view.RereadTarget(ctx, r.writer.Live, obj)
		switch {
		case readErr != nil:
			return s.failed(v1alpha1.ReadFailedReason, readErr)
		case latest == nil: // the object was deleted, and its event follows
			return &promotionState{now: s.now}, nil
		}
		obj = latest
	}
	s.NotLaterThan(s.now.Add(view.CacheDelay))
	return s, err
}

// isSharded returns whether other processes reconcile some of the Gates.
func (r *Reconciler) isSharded() bool { return r.Gates.AllGates != nil }

// decide decides the next step. A promotion also needs a release slot of each Gate that releases at a pace. With shards, only a live
// round takes slots, because Gates of other shards may refuse the promotion.
func (r *Reconciler) decide(s *promotionState, live bool) {
	s.decide(s.input)
	if (live || !r.isSharded()) && !s.step.RollsBack && (s.step.Again || s.step.Promotes) && !r.takesSlots(s) {
		waits := s.input
		waits.Gates = promotion.Gates{Reason: v1alpha1.GateClosedReason, Message: msgAwaitsSlot}
		s.waits = true
		s.decide(waits)
	}
}

// write writes the status, which records a promotion before it happens, then emits the events, and then writes the pinned source. A
// conflict on the pinned source is not an error, because the next round reads the source again.
func (r *Reconciler) write(ctx context.Context, s *promotionState) error {
	if err := r.writer.status(ctx, s); err != nil {
		_, err = s.failed(v1alpha1.StatusWriteFailedReason, err)
		return err
	}
	r.notify(s)
	if s.step.Write == nil {
		return nil
	}
	if err := r.writer.pin(ctx, s); err != nil && !ownwrites.Raced(err) && !apierrors.IsAlreadyExists(err) {
		_, err = s.failed(v1alpha1.WriteFailedReason, err)
		return err
	}
	return nil
}

// takesSlots requests a release slot from each Gate of a GatedSource that releases at a pace. It returns whether all have been granted.
func (r *Reconciler) takesSlots(s *promotionState) bool {
	has := true
	for _, g := range s.gates {
		if g.HasPace() && !r.Slots.Wait(g.Object.UID, target.KeyOf(s.object), rollout.NewItem(g.Object, s.object)) {
			r.Queues.Gate(summary.KeyFor(g.Object).NamespacedName)
			has = false
		}
	}
	return has
}

// leaveSlots returns the release slots that a GatedSource does not need. Call it only after all writes have succeeded, because a
// GatedSource whose write failed keeps its slots for the next attempt.
func (r *Reconciler) leaveSlots(s *promotionState) {
	if s.waits {
		return
	}
	for _, g := range s.gates {
		if g.Object != nil && g.Object.Spec.Release != nil {
			r.Slots.Leave(g.Object.UID, target.KeyOf(s.object), s.step.Promoted != nil)
		}
	}
}

// report records the outcome for each Gate, including Gates with mode Audit and Gates that release in waves.
func (r *Reconciler) report(key target.Key, s *promotionState) {
	entries := s.entries()
	for _, g := range s.gates {
		i := slices.IndexFunc(entries, func(e summary.Entry) bool { return g.Object != nil && e.Gate == summary.KeyFor(g.Object) })
		if !g.Audits || i < 0 {
			continue
		}
		before := r.Summary.Outcome(key, entries[i].Gate)
		entries[i].Outcome = s.audit(g, before)
		if entries[i].Outcome == summary.WouldHold && before != summary.WouldHold && before != summary.Held && r.Summary.IsComplete() {
			r.TargetEvents.Audited(s.current(), g, s.now)
		}
	}
	r.Summary.Put(key, entries, s.now)
	r.Rollout.Record(key, s.gates, s.member)
	if s.after != nil {
		r.GateMetrics.RecordWaiting(key.NamespacedName, s.after.Status)
	}
}

// evict evicts a GatedSource that was deleted.
func (r *Reconciler) evict(key target.Key) {
	for _, cache := range r.Caches {
		cache.Evict(key)
	}
	r.Rollout.Record(key, nil, nil)
	r.GateMetrics.RecordWaiting(key.NamespacedName, v1alpha1.GatedSourceStatus{})
}
