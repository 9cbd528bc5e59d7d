package controllers

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

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// maxPromotionRounds bounds the rounds of one reconciliation of a GatedSource: a promotion takes four, and each conflict one more.
	maxPromotionRounds = 8

	awaitsSlot = "It waits for its turn: its gate releases its targets at a pace."
)

// GatedSourceReconciler moves the pinned sources of GatedSources while their Gates are open, and writes the status of GatedSources. To
// their Gates, GatedSources are targets that are not written to hold them.
type GatedSourceReconciler struct {
	// EventRecorder for events on GatedSources.
	kuberecorder.EventRecorder
	// Clock is read once for each round.
	Clock clock.PassiveClock
	// Targets reads GatedSources and sources.
	Targets TargetReader
	// Gates looks up the Gates of a GatedSource.
	Gates *GateIndex
	// Tally counts the outcomes for the Gates. Turns has the GatedSources that wait for a release slot.
	Tally *summary.Tally
	Turns *Turns
	// Wake enqueues Gates and GatedSources.
	Wake Waker
	// Stamped returns whether the API server stamps who approves.
	Stamped func(context.Context) (bool, error)
	// Shard selects the GatedSources of this process by their labels.
	Shard labels.Selector
	// GateMetrics has the metrics of GatedSources, too.
	GateMetrics *GateMetrics

	writer  *gatedSourceWriter
	rollout rollout
	caches  []ownwrites.Evictor[target.Key]
	news    *targetNews
}

// gatedSourceKey returns the key of a GatedSource among the targets.
func gatedSourceKey(name types.NamespacedName) target.Key {
	return target.Key{GroupKind: target.GatedSource, NamespacedName: name}
}

// Reconcile promotes the revision that the Gates of a GatedSource let through, and reports the outcome to them.
func (r *GatedSourceReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := gatedSourceKey(req.NamespacedName)
	r.Tally.Look(key)
	obj, isBehind, err := fetchTarget(ctx, r.Targets, r.writer.versions, key)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case isBehind:
		return requeue(r.Wake, key, cacheDelay), nil
	case obj == nil:
		r.forget(key)
		return ctrl.Result{}, nil
	case !r.Shard.Matches(labels.Set(obj.GetLabels())):
		r.report(key, &promotionState{now: r.Clock.Now()})
		return ctrl.Result{}, nil
	}
	s, err := r.promote(ctx, obj)
	if errors.Is(err, errNotRead) {
		s.again(s.now.Add(cacheDelay))
		err = nil
	}
	if err == nil || s.failure != nil {
		r.report(key, s)
	}
	if err != nil {
		r.Wake.Urge(key)
		return ctrl.Result{}, err
	}
	if next := s.nextCheck(r.Gates.AllGates != nil); !next.IsZero() {
		return requeue(r.Wake, key, next.Sub(r.Clock.Now())), nil
	}
	return ctrl.Result{}, nil
}

// promote repeats fetch, decide and write until nothing is left to write. The first round uses the cache. Steps that cannot be undone are
// decided on live reads.
func (r *GatedSourceReconciler) promote(ctx context.Context, obj *target.Object) (s *promotionState, err error) {
	live := false
	for range maxPromotionRounds {
		if s, err = r.fetch(ctx, obj, live); err != nil {
			return s, err
		}
		r.decide(s)
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
		latest, readErr := rereadTarget(ctx, r.writer.live, obj)
		switch {
		case readErr != nil:
			return s.failed(v1alpha1.ReadFailedReason, readErr)
		case latest == nil: // its event follows
			return &promotionState{now: s.now}, nil
		}
		obj = latest
	}
	s.again(s.now.Add(cacheDelay))
	return s, err
}

// decide decides the next step. A promotion also needs a release slot of each Gate that releases at a pace.
func (r *GatedSourceReconciler) decide(s *promotionState) {
	s.decide(s.input)
	if (s.step.Again || s.step.Promotes) && !r.takesSlots(s) {
		waits := s.input
		waits.Gates = promotion.Gates{Reason: v1alpha1.GateClosedReason, Message: awaitsSlot}
		s.waits = true
		s.decide(waits)
	}
}

// write writes the status, which records a promotion before it happens, emits the events and then writes the pinned source. A
// conflicting write of the pinned source is no failure: the next round decides on the source as it is then.
func (r *GatedSourceReconciler) write(ctx context.Context, s *promotionState) error {
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

// takesSlots returns whether a GatedSource has a release slot of each of its Gates that release at a pace.
func (r *GatedSourceReconciler) takesSlots(s *promotionState) bool {
	has := true
	for _, g := range s.gates {
		if g.HasPace() && !r.Turns.Wait(g.Object.UID, target.KeyOf(s.object), turnOf(g.Object, s.object)) {
			r.Wake.Gate(summary.KeyFor(g.Object).NamespacedName)
			has = false
		}
	}
	return has
}

// leaveSlots returns the release slots of a GatedSource that does not wait for them. Call it only after all writes have succeeded: a
// GatedSource whose write failed keeps its slots for the next try.
func (r *GatedSourceReconciler) leaveSlots(s *promotionState) {
	if s.waits {
		return
	}
	for _, g := range s.gates {
		if g.Object != nil && g.Object.Spec.Release != nil {
			r.Turns.Leave(g.Object.UID, target.KeyOf(s.object), s.step.Promoted != nil)
		}
	}
}

// report reports the outcome to each Gate, also to those with mode Audit and to those that release in waves.
func (r *GatedSourceReconciler) report(key target.Key, s *promotionState) {
	entries := s.entries()
	for _, g := range s.gates {
		i := slices.IndexFunc(entries, func(e summary.Entry) bool { return g.Object != nil && e.Gate == summary.KeyFor(g.Object) })
		if !g.Audits || i < 0 {
			continue
		}
		before := r.Tally.Outcome(key, entries[i].Gate)
		entries[i].Outcome = s.audit(g, before)
		if entries[i].Outcome == summary.WouldHold && before != summary.WouldHold && before != summary.Held && r.Tally.IsComplete() {
			r.news.audited(s.current(), g, s.now)
		}
	}
	r.Tally.Put(key, entries, s.now)
	r.rollout.record(key, s.gates, s.member)
	if s.after != nil {
		r.GateMetrics.waits(key.NamespacedName, s.after.Status)
	}
}

// forget deletes the state of a GatedSource that is gone.
func (r *GatedSourceReconciler) forget(key target.Key) {
	for _, cache := range r.caches {
		cache.Evict(key)
	}
	r.rollout.record(key, nil, nil)
	r.GateMetrics.waits(key.NamespacedName, v1alpha1.GatedSourceStatus{})
}
