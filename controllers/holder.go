package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// writesAtOnce is WritesAtOnce by default.
	writesAtOnce = 16

	// conflictRetries is how often a target is read anew that somebody else
	// wrote between our reading and writing. After that the queue's back-off
	// takes over.
	conflictRetries = 5

	// conflictPause is how long to wait before the first retry at least.
	conflictPause = 2 * time.Millisecond
)

// order is what a Gate wants of its targets at an instant.
type order struct {
	target.Want
	// gate is the Gate as it is now, nil if it is gone.
	gate *v1alpha1.Gate
	// decision on that Gate, nil if it is not what the targets are settled by.
	decision *gate.Decision
	// anew says that what somebody has resumed so far does not count any more.
	anew bool
	// now is when the Gate was looked at.
	now time.Time
	// live returns all Gates, which are read once for all targets.
	live func() ([]*v1alpha1.Gate, error)
	// stands tells whether what is ordered still stands, nil if that does not change.
	stands func() bool
	// leaves says that the targets are none that the Gate governs, which is closed.
	leaves bool
	// locks are the writes of GateLocks that come first, each before the targets of its namespace.
	locks *LockWrites
}

// isOver returns whether the order is not to be carried out any further.
func (o order) isOver() bool { return o.stands != nil && !o.stands() }

// assert brings all targets to what the decision wants. One that fails does not
// stop the others. What somebody resumed before the Gate closed anew is held anew,
// also if nobody saw it open in between, or it did not get to the target.
//
// In each namespace the lock comes first: when a Gate closes, so that nobody resumes what is
// held; when it opens, so that nobody holds what is released. Where it cannot be written, targets
// are held all the same, and none is released.
func (r *GateReconciler) assert(ctx context.Context, obj *v1alpha1.Gate, decision gate.Decision, stands *standing, anew bool, now time.Time) *outcomes {
	result := &outcomes{}
	want := order{gate: obj, decision: &decision, anew: anew, now: now, stands: func() bool { return stands.holds(ctx) }, Want: target.Want{
		Gate:    client.ObjectKeyFromObject(obj).String(),
		Closed:  decision.State == v1alpha1.StateClosed,
		Respect: obj.Spec.ResumePolicy == v1alpha1.ResumePolicyRespect,
	}}
	governed, denied := r.selectTargets(ctx, obj, result)
	machines, others := split(governed.targets)
	result.machines = machines
	want.locks = r.Locks.Put(ctx, want.Gate, r.sharesOf(obj, want.Closed, governed.targets))
	result.add(r.settleGoverned(ctx, obj, others, want))
	result.total += int64(len(machines))
	result.merge(r.activate(ctx, others, want))
	if result.over = want.isOver(); result.over {
		return result
	}
	refused := target.Want{Gate: want.Gate, Closed: true, Refusal: v1alpha1.AccessDeniedReason}
	result.merge(r.settleAll(ctx, denied.targets, order{Want: refused, gate: obj, now: now}))
	if len(decision.Errors) == 0 { // else nobody knows what it is meant to name
		rest := want
		rest.leaves, rest.Closed, rest.decision = want.Closed, false, nil
		rest.stands = func() bool { return stands.holds(ctx) && r.isAsItWas(ctx, obj) }
		result.over = r.letGo(ctx, result, rest, func(t *target.Object) bool {
			return governed.uids[t.GetUID()] || denied.uids[t.GetUID()]
		})
	}
	want.report(result, client.ObjectKeyFromObject(obj))
	return result
}

// letGo releases what a Gate holds but does not govern, as long as that stands. What a closed
// Gate names stays even if it was not selected, for a failure say. It returns whether the order
// was over before all were released.
func (r *GateReconciler) letGo(ctx context.Context, result *outcomes, want order, selected func(*target.Object) bool) bool {
	held, err := r.Targets.HeldBy(ctx, want.Gate)
	if err != nil {
		result.fail("", want.gate.Namespace, v1alpha1.AnyName, v1alpha1.ReadFailedReason, err.Error(), err)
		return false
	}
	held = slices.DeleteFunc(held, func(t *target.Object) bool {
		return selected(t) || want.leaves && governs(want.gate, &t.Unstructured, namedBy(&t.Unstructured))
	})
	result.merge(r.settleAll(ctx, held, want))
	return len(held) > 0 && want.isOver()
}

// settleGoverned settles the targets of a Gate, as many as are due if they are
// being released at a pace.
func (r *GateReconciler) settleGoverned(ctx context.Context, obj *v1alpha1.Gate, targets []*target.Object, want order) *outcomes {
	var result *outcomes
	if want.Closed || obj.Spec.Release == nil {
		r.endRelease(obj)
		result = r.settleAll(ctx, targets, want)
	} else {
		want.locks.wait(want.isOver) // whose turn it is depends on who can be released
		result = r.settlePaced(ctx, obj, targets, want)
	}
	result.total = int64(len(targets))
	return result
}

// settleAll settles targets, several at once: first all are held or released, each as soon
// as the GateLock of its namespace lets it be, then the conditions of those that are held are
// written, so that no target waits for the condition of another. Machines are passed over:
// they are not held, see refreshMachines.
func (r *GateReconciler) settleAll(ctx context.Context, targets []*target.Object, want order) *outcomes {
	want.live = r.liveOnce(ctx, nil)
	result := &outcomes{}
	all := make([]settled, len(targets))
	errs := make([]error, len(targets))
	for i := range all {
		all[i].told = true // those that it does not get to
	}
	r.each(want.turns(targets), func(i int, obj *target.Object) {
		if all[i].told = isMachine(&obj.Unstructured) || want.isOver(); !all[i].told {
			all[i], errs[i] = r.settle(ctx, obj, want)
		}
	})
	r.each(slices.All(targets), func(i int, _ *target.Object) {
		if errs[i] == nil && !all[i].told && (!want.isOver() || all[i].step.Write && r.isSuspended(ctx, want.gate)) {
			all[i], errs[i] = r.confirm(ctx, all[i], want)
		}
	})
	for i, obj := range targets {
		result.again(all[i].plan.Recheck)
		if all[i].awaits {
			result.awaiting++
			result.held++
		}
		if want.keeps(obj) && slices.Contains(heldBy(&obj.Unstructured), want.Gate) {
			result.held++
		}
		if err := errs[i]; err != nil {
			reason := v1alpha1.WriteFailedReason
			if errors.As(err, &untoldError{}) {
				reason = v1alpha1.StatusWriteFailedReason
			}
			result.fail(obj.GetKind(), obj.GetNamespace(), obj.GetName(), reason, err.Error(),
				fmt.Errorf("%s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err))
			continue
		}
		switch all[i].step.Outcome {
		case target.OutcomeHeld:
			result.held++
		case target.OutcomeForeign:
			result.foreign++
		case target.OutcomeExempt:
			result.exempt++
		case target.OutcomeReleased:
			result.released++
		case target.Untouched, target.OutcomeResumed:
		}
	}
	return result
}

// each calls do for all targets with their indexes, up to WritesAtOnce at the same time. One
// that fails does not stop the others.
func (r *GateReconciler) each(targets iter.Seq2[int, *target.Object], do func(int, *target.Object)) {
	var group errgroup.Group
	group.SetLimit(cmp.Or(r.WritesAtOnce, writesAtOnce))
	for i, obj := range targets {
		group.Go(func() error {
			do(i, obj)
			return nil
		})
	}
	_ = group.Wait() // what fails is in what do notes
}

// settled is what became of a target.
type settled struct {
	// obj is the target as it is now.
	obj *target.Object
	// want is what was wanted of it.
	want order
	// state is what it was in before the step, for which the plan was made.
	state target.State
	step  target.Step
	plan  planned
	// told means that the target itself says what became of it, if anything did.
	told bool
	// awaits means that it waits for another Gate before it is let go.
	awaits bool
}

// releases returns whether the step lets the target go.
func (s settled) releases() bool { return s.step.Write && !s.step.Hold }

// settle takes the step that a target needs, if any. Each write is conditional
// on the version of the target that the step was decided on.
func (r *GateReconciler) settle(ctx context.Context, obj *target.Object, want order) (settled, error) {
	for retry := 0; ; retry++ {
		if !obj.GetDeletionTimestamp().IsZero() {
			// Flux prunes nothing of an object that is deleted while suspended.
			return settled{told: true}, nil
		}
		result, err := r.step(ctx, obj, want)
		if !apierrors.IsConflict(err) || retry == conflictRetries {
			return result, err
		}
		if obj, err = r.reread(ctx, obj, retry); obj == nil {
			return settled{told: true}, err
		}
	}
}

// confirm tells what became of a target that was not released. If somebody else wrote
// it meanwhile, it may need another step.
func (r *GateReconciler) confirm(ctx context.Context, s settled, want order) (settled, error) {
	want.anew = false // what somebody resumes from now on counts
	for retry := 0; ; retry++ {
		if s.told {
			return s, nil
		}
		if s.step.Write {
			r.tell(s)
		}
		_, err := r.approve(ctx, s)
		if err == nil {
			return s, nil
		}
		if !apierrors.IsConflict(err) || retry == conflictRetries {
			return s, untoldError{err}
		}
		obj, err := r.reread(ctx, s.obj, retry)
		if err != nil {
			return s, untoldError{err}
		}
		if obj == nil {
			return settled{told: true}, nil
		}
		if s, err = r.settle(ctx, obj, want); err != nil {
			return s, err
		}
	}
}

// untoldError is why a target does not tell what became of it. What somebody resumes is not
// held anew because of it.
type untoldError struct{ error }

// Unwrap returns the error of the API server.
func (e untoldError) Unwrap() error { return e.error }

// reread reads a target from the API server after a conflict. It is nil if it is gone,
// also if there is another of the same name: its own event brings that one here, if it
// matches. Before, it pauses for milliseconds, twice as long for each retry and different
// for each target: others may write it as often as we do, Gates that close at the same
// instant above all.
func (r *GateReconciler) reread(ctx context.Context, obj *target.Object, retry int) (*target.Object, error) {
	select {
	case <-ctx.Done():
	case <-time.After(wait.Jitter(conflictPause<<retry, 1)):
	}
	latest := &target.Object{}
	latest.SetGroupVersionKind(obj.GroupVersionKind())
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(obj), latest)
	if err != nil || latest.GetUID() != obj.GetUID() {
		return nil, client.IgnoreNotFound(err)
	}
	target.Trim(&latest.Unstructured, us)
	return latest, nil
}

func (r *GateReconciler) step(ctx context.Context, obj *target.Object, want order) (settled, error) {
	adapter := target.Of(&obj.Unstructured)
	state, holders, own := adapter.Observe(obj, us), heldBy(&obj.Unstructured), want.Gate
	if want.leaves && governs(want.gate, &obj.Unstructured, namedBy(&obj.Unstructured)) {
		return settled{told: true}, nil // its event brings it here as one that is governed
	}
	// What was to be held anew and was not is no more what somebody has resumed.
	want.Respect = want.Respect && !want.anew && !hasFailed(want.gate, obj, v1alpha1.WriteFailedReason)
	if !want.Closed && heldByNobody(&obj.Unstructured) {
		closed, err := r.closedElsewhere(&obj.Unstructured, want)
		if err != nil || closed {
			return settled{told: true}, err // that Gate will put its name to the hold
		}
		want.Gate = ""
	}
	plan, err := r.plan(ctx, obj, state, target.After(holders, want.Want), want)
	if err != nil {
		return settled{}, err
	}
	s := settled{obj: obj, want: want, state: state, step: target.Next(state, holders, want.Want, plan.Plan), plan: plan}

	if s.releases() && state != target.Free && state != target.Foreign {
		now := r.Clock.Now()
		awaits, err := r.awaits(ctx, s, own, now)
		if err != nil || awaits {
			return settled{told: true, awaits: awaits, plan: planned{Plan: target.Plan{Recheck: now.Add(awaitsFor)}}}, err
		}
	}
	if s.step.Claim {
		if s.obj, err = r.apply(ctx, s.obj, target.Step{Hold: true, HeldBy: holders}, target.Lever(s.obj)); err != nil {
			return s, err
		}
	}
	// The condition is written while the target still names the Gate, so that
	// after a crash there is somebody left to mend it.
	if s.releases() {
		if s.obj, err = r.approve(ctx, s); err != nil {
			return s, err
		}
	}
	if s.step.Write {
		if s, err = r.write(ctx, s, holders); err != nil {
			return s, err
		}
	}
	if s.told = s.releases(); s.told {
		r.tell(s)
	}
	return s, nil
}

// apply writes who holds the target, by server-side apply of nothing else. What others have
// set is taken from them: that is what a hold is. It returns the target on its new version,
// otherwise as it was.
func (r *GateReconciler) apply(ctx context.Context, obj *target.Object, step target.Step, lever map[string]any) (*target.Object, error) {
	config := configOf(obj)
	if len(step.HeldBy) > 0 {
		config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: target.FormatHeldBy(step.HeldBy)})
	}
	if step.Hold {
		config.Object["spec"] = lever
	}
	raw, err := json.Marshal(config.Object)
	if err != nil {
		return nil, err
	}
	latest := metadataOf(obj)
	if err := r.Patch(ctx, latest, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	written := &target.Object{Unstructured: *obj.DeepCopy()}
	written.SetResourceVersion(latest.ResourceVersion)
	written.SetGeneration(latest.Generation)
	return written, nil
}

// metadataOf returns what the answer to a patch of a target is read into. Only the metadata
// is asked for: with thousands of targets it is the decoding of whole objects that costs.
func metadataOf(obj *target.Object) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	metadata.SetGroupVersionKind(obj.GroupVersionKind())
	return metadata
}

// configOf returns a configuration for server-side apply of a target on the
// version that was read.
func configOf(obj *target.Object) *target.Object {
	config := &target.Object{}
	config.SetGroupVersionKind(obj.GroupVersionKind())
	config.SetName(obj.GetName())
	config.SetNamespace(obj.GetNamespace())
	// Without the UID an object that is gone would be made anew, or refused as
	// an incomplete one.
	config.SetUID(obj.GetUID())
	config.SetResourceVersion(obj.GetResourceVersion())
	return config
}
