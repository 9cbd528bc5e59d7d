package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/lock"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

const (
	// lockDelay is when to look again at a target that is locked, whose GateLock tells earlier.
	lockDelay = 5 * time.Second

	// missingInterval is how often targets are looked at again that name a Gate which does
	// not exist, or that are held without the name of a Gate on them. Events do that at once; each name that
	// somebody makes up costs a request to the API server.
	missingInterval = 10 * time.Minute
)

// TargetReconciler holds and releases targets, and tells in their conditions what became of them.
type TargetReconciler struct {
	// Clock is read once for each decision.
	Clock clock.PassiveClock
	// Targets reads targets.
	Targets TargetReader
	// Gates looks up the Gates of a target.
	Gates *GateIndex
	// Locks reads GateLocks.
	Locks LockReader
	// Tally counts what became of targets, Turns has those that wait to be released.
	Tally *tally.Tally
	Turns *Turns
	// Book has the targets of Gates that release in waves.
	Book *Book
	// Wake wakes a Gate when a target waits for its turn.
	Wake Waker
	// Passes has what the history of Gates says of passes.
	Passes *Passes

	writer    *targetWriter
	activator *activator
	promoter  *promoter
	news      *targetNews
}

// Reconcile makes of a target what all Gates together say, in one write, and then tells it.
func (r *TargetReconciler) Reconcile(ctx context.Context, key target.Key) (ctrl.Result, error) {
	now := r.Clock.Now()
	r.Tally.Look(key)
	obj, err := r.Targets.Get(ctx, key)
	switch {
	case errors.Is(err, errNotRead):
		return r.again(key, cacheDelay), nil
	case err != nil:
		return ctrl.Result{}, err
	case obj == nil || !obj.GetDeletionTimestamp().IsZero():
		// Flux prunes nothing of an object that is deleted while suspended.
		r.forget(key)
		return ctrl.Result{}, nil
	case r.writer.versions.behind(key, obj):
		return r.again(key, cacheDelay), nil
	}
	s, err := r.settle(ctx, obj, now)
	for retry := 0; apierrors.IsConflict(err) && retry < conflictRetries; retry++ {
		if obj, err = r.writer.reread(ctx, obj); err != nil {
			s, err = s.failed(v1alpha1.ReadFailedReason, err)
			break
		}
		if obj == nil {
			return ctrl.Result{}, nil // its event is to come
		}
		now = r.Clock.Now()
		s, err = r.settle(ctx, obj, now)
	}
	if err != nil {
		if s.failure != nil {
			r.note(key, &s, now)
		}
		r.Wake.Urge(key)
		return ctrl.Result{}, err
	}
	r.note(key, &s, now)
	return r.result(key, s, now), nil
}

// settle decides about a target, and makes it so.
func (r *TargetReconciler) settle(ctx context.Context, obj *target.Object, now time.Time) (settled, error) {
	if target.KeyOf(obj).GroupKind == target.GatedSource {
		return r.promoter.settle(ctx, obj)
	}
	gates, err := r.Gates.Of(ctx, obj, now)
	if err != nil {
		return settled{}, err
	}
	s := settled{gates: gates, ruling: verdict.Rule(obj, gates, r.Targets.Definition(target.KeyOf(obj).GroupKind), now)}
	if s.ruling.Grants() {
		live, err := r.Gates.Live(ctx, obj, now) // a reconciliation cannot be undone
		if err != nil {
			return s.failed(v1alpha1.ReadFailedReason, err)
		}
		if s.ruling = verdict.Rule(obj, live, r.Targets.Definition(target.KeyOf(obj).GroupKind), now); !s.ruling.Step.Write {
			s.again(now.Add(cacheDelay)) // the cache lacks what the API server has
		}
	}
	s.again(s.ruling.Plan.Recheck)
	if s.ruling.LetsGo() {
		if s.waits, err = r.mustWait(ctx, &s); err != nil {
			return s.failed(v1alpha1.ReadFailedReason, err)
		}
	}
	isHeldAgain := false
	if s.waits {
		s.ruling, isHeldAgain = s.ruling.AgainHeld()
	}
	s.again(s.ruling.PassUntil())
	switch {
	case s.waits && !isHeldAgain:
		if s.inLine && r.tells(s) {
			r.news.unpassed(s.ruling.InLine(), s.gates)
		}
		return s, nil
	case s.ruling.IsNewlyIgnored(): // told first: that is how it is known next time
		if r.tells(s) {
			s.again(now)
		}
		return r.tell(ctx, s)
	case s.ruling.Step.Write:
		if err := r.write(ctx, s.ruling); err != nil {
			return s.failed(v1alpha1.WriteFailedReason, err)
		}
		s.wrote = true
		if !s.waits {
			r.leaveTurns(s, !s.ruling.Step.Hold && s.ruling.Step.Outcome != verdict.Passing)
		}
		r.news.tell(s.ruling)
		r.news.passed(s.ruling, s.gates)
		return s, nil
	}
	if r.tells(s) {
		r.news.unpassed(s.ruling, s.gates)
	}
	r.leaveTurns(s, false)
	return r.tell(ctx, s)
}

// write takes the step that a target needs.
func (r *TargetReconciler) write(ctx context.Context, ruling verdict.Ruling) error {
	obj, step := ruling.Object, ruling.Step
	lever := ruling.Plan.Lever
	if lever == nil {
		lever = target.Lever(obj)
	}
	if step.Claim {
		claimed, err := r.writer.apply(ctx, obj, share{ruling.Observed.HeldBy, target.Lever(obj), ruling.Observed.Noted()})
		if err != nil {
			return err
		}
		obj = claimed
	}
	if !step.Hold {
		lever = nil
	}
	_, err := r.writer.apply(ctx, obj, share{step.Names, lever, step.Noted()})
	return err
}

// mustWait returns whether a target that is to be let go has to wait: until the GateLock does not lock it any more in the
// name of a Gate that lets it go, or until it has its turn.
func (r *TargetReconciler) mustWait(ctx context.Context, s *settled) (bool, error) {
	obj := s.ruling.Object
	if locked, err := r.isLocked(ctx, s.ruling); locked || err != nil {
		s.again(s.ruling.Now.Add(lockDelay))
		return true, err
	}
	if len(s.ruling.Observed.HeldBy) > 0 {
		return r.awaitsTurn(s), nil
	}
	// Nobody has a name on it: another shard may have a Gate that puts its name there.
	gates, err := r.Gates.Live(ctx, obj, s.ruling.Now)
	if err != nil || slices.ContainsFunc(gates, func(g verdict.Gate) bool { return isOver(g) && !g.LetsActivate() }) {
		return true, err
	}
	return r.awaitsTurn(s), nil
}

// isLocked returns whether the GateLock locks a target in the name of a Gate that lets it go. It has no say over Certificates.
func (r *TargetReconciler) isLocked(ctx context.Context, ruling verdict.Ruling) (bool, error) {
	obj := ruling.Object
	if !target.Suspends(target.Of(&obj.Unstructured)) {
		return false, nil
	}
	lockers, err := r.lockers(ctx, obj)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(slices.Concat(ruling.Dropped(), ruling.Verdict.Open), func(name string) bool { return slices.Contains(lockers, name) }), nil
}

// lockers returns the Gates in whose names the GateLocks lock a target: that of its namespace, and that of all.
func (r *TargetReconciler) lockers(ctx context.Context, obj *target.Object) ([]string, error) {
	gateLock, err := r.Locks.Lock(ctx, obj.GetNamespace())
	if gateLock == nil || err != nil {
		return nil, err
	}
	o := lock.Object{Kind: obj.GetKind(), Name: obj.GetName(), Labels: obj.GetLabels(), Gates: verdict.NamedBy(&obj.Unstructured)}
	lockers := lock.Lockers(&gateLock.Spec, o)
	all, err := r.Locks.Lock(ctx, v1alpha1.AnyName)
	if all == nil || err != nil || len(all.Spec.Selectors) == 0 || obj.GetNamespace() == all.Namespace {
		return lockers, err
	}
	o.NamespaceLabels, err = r.Gates.labels(ctx, obj.GetNamespace())
	return append(lockers, lock.Selecting(&all.Spec, o)...), err
}

// awaitsTurn returns whether a target has to wait for its turn by one of the Gates that let it go. A Certificate that has to
// be renewed does not wait.
func (r *TargetReconciler) awaitsTurn(s *settled) bool {
	key, waits := target.KeyOf(s.ruling.Object), false
	for _, g := range s.gates {
		if !isPacing(g) || !slices.Contains(s.ruling.Observed.HeldBy, g.Name) && !gate.ReleasesInWaves(g.Object) {
			continue // in waves, what others let go waits, too
		}
		late, recheck := s.ruling.IsLate([]verdict.Gate{g})
		if late {
			continue
		}
		if !r.Turns.Ask(tallied(g.Object), key, turnOf(g.Object, s.ruling.Object)) {
			waits, s.inLine = true, true
			s.again(recheck)
			if gate.ReleasesInWaves(g.Object) {
				r.Wake.GateSoon(tallied(g.Object).NamespacedName) // it is woken at once when all are looked at
			} else {
				r.Wake.Gate(tallied(g.Object).NamespacedName)
			}
		}
	}
	return waits
}

// leaveTurns gives back the turns of a target that does not wait any more, because it was released or is not to be.
func (r *TargetReconciler) leaveTurns(s settled, released bool) {
	for _, g := range s.gates {
		if g.Object != nil && g.Object.Spec.Release != nil {
			r.Turns.Leave(tallied(g.Object), target.KeyOf(s.ruling.Object), released)
		}
	}
}

// tell makes the conditions of a target say what became of it.
func (r *TargetReconciler) tell(ctx context.Context, s settled) (settled, error) {
	if !r.tells(s) {
		return s, nil
	}
	obj := s.ruling.Object
	var activated *metav1.Condition
	var mended error
	if verdict.IsCertificate(obj) && verdict.Activates(obj) && slices.ContainsFunc(s.gates, isOver) {
		a := r.activator.run(ctx, obj, s.ruling.Now)
		activated = a.condition()
		s.again(a.decision.Recheck)
		s.failure, mended = a.failure(), a.err
	}
	if r.Targets.Definition(target.KeyOf(obj).GroupKind).Untold {
		return s, mended // its events tell all the same
	}
	list := s.ruling.Conditions(activated)
	changed, err := r.writer.conditions(ctx, obj, list, metav1.NewTime(s.ruling.Now))
	switch {
	case apierrors.IsConflict(err):
		return s, err
	case err != nil:
		return s.failed(v1alpha1.StatusWriteFailedReason, err)
	case changed && verdict.IsCertificate(obj):
		r.news.certified(obj, list)
	}
	return s, mended
}

// tells returns whether it is for this process to tell what became of a target. With shards, several may hold it: the one
// tells that has the first name on it, or that has let it go. News that a crash has left are told at the start.
func (r *TargetReconciler) tells(s settled) bool {
	if r.Gates.AllGates == nil {
		return true
	}
	if names := s.ruling.Step.Names; len(names) > 0 {
		return !slices.ContainsFunc(s.gates, func(g verdict.Gate) bool { return g.Name == names[0] && g.Stand == verdict.Elsewhere })
	}
	obj := s.ruling.Object
	return slices.ContainsFunc(s.gates, isOurs) || r.writer.versions.isOwn(target.KeyOf(obj), obj.GetResourceVersion()) || !r.Tally.IsComplete()
}

// result returns when to look at a target again.
func (r *TargetReconciler) result(key target.Key, s settled, now time.Time) ctrl.Result {
	if s.ruling.Step.Hold && (len(s.ruling.Step.Names) == 0 || slices.ContainsFunc(s.gates, isRefused)) {
		s.again(now.Add(missingInterval))
	}
	if s.at.IsZero() {
		return ctrl.Result{}
	}
	return r.again(key, s.at.Sub(r.Clock.Now()))
}

// again has a target looked at later, as urgently as if it were to be held.
func (r *TargetReconciler) again(key target.Key, after time.Duration) ctrl.Result {
	r.Wake.Urge(key)
	return ctrl.Result{RequeueAfter: max(after, time.Millisecond)}
}

func isRefused(g verdict.Gate) bool { return g.Stand == verdict.Missing || g.Stand == verdict.Denied }

// forget forgets a target that is gone.
func (r *TargetReconciler) forget(key target.Key) {
	r.Tally.Forget(key)
	r.Turns.Forget(key)
	r.news.refused.forget(key)
	for _, g := range r.Book.Keep(key) {
		r.Wake.GateSoon(g.NamespacedName)
	}
	r.writer.versions.forget(key)
	if key.GroupKind == target.GatedSource {
		r.promoter.metrics.waits(key.NamespacedName, v1alpha1.GatedSourceStatus{})
	}
}
