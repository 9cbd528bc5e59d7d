package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// writesAtOnce bounds the targets of one Gate that are written at the same
	// time. The rate is bounded by --kube-api-qps and --kube-api-burst.
	writesAtOnce = 16

	// conflictRetries is how often a target is read anew that somebody else
	// wrote between our reading and writing. After that the queue's back-off
	// takes over.
	conflictRetries = 5
)

// order is what a Gate wants of its targets at an instant.
type order struct {
	target.Want
	// gate is the Gate as it is now, nil if it is gone.
	gate *v1alpha1.Gate
	// decision on that Gate, nil if it is not what the targets are settled by.
	decision *gate.Decision
	// now is when the Gate was looked at.
	now time.Time
}

// assert brings all targets to what the decision wants. One that fails does not
// stop the others. Edges that were missed are made up for: what somebody resumed
// before them is held anew.
//
// The lock comes first: when a Gate closes, so that nobody resumes what is held;
// when it opens, so that nobody holds what is released.
func (r *GateReconciler) assert(ctx context.Context, obj *v1alpha1.Gate, decision gate.Decision, missed bool, now time.Time) *outcomes {
	result := &outcomes{}
	want := order{gate: obj, decision: &decision, now: now, Want: target.Want{
		Gate:    client.ObjectKeyFromObject(obj).String(),
		Closed:  decision.State == v1alpha1.StateClosed,
		Respect: obj.Spec.ResumePolicy == v1alpha1.ResumePolicyRespect && !missed,
	}}
	governed, denied := r.selectTargets(ctx, obj, result)
	machines, others := split(governed.targets)
	result.machines = machines
	lockErr := r.Locks.Put(ctx, want.Gate, r.sharesOf(obj, want.Closed, governed.targets))
	if lockErr != nil {
		result.fail(v1alpha1.GateLockKind, obj.Namespace, v1alpha1.GateLockName, v1alpha1.WriteFailedReason, lockErr.Error(), lockErr)
		if !want.Closed {
			result.total = int64(len(governed.targets)) // each stays as it is
			return result
		}
	}
	result.add(r.settleGoverned(ctx, obj, others, want))
	result.total += int64(len(machines))
	result.merge(r.activate(ctx, others, want))
	refused := target.Want{Gate: want.Gate, Closed: true, Refusal: v1alpha1.AccessDeniedReason}
	result.merge(r.settleAll(ctx, denied.targets, order{Want: refused, gate: obj, now: now}))

	// What the Gate holds but does not govern is released, unless it is locked
	// still, or the spec is broken: then nobody knows what it is meant to name.
	// What a closed Gate names stays even if it was not selected, for a failure
	// say.
	if len(decision.Errors) > 0 || lockErr != nil {
		return result
	}
	held, err := r.Targets.HeldBy(ctx, want.Gate)
	if err != nil {
		result.fail("", obj.Namespace, v1alpha1.AnyName, v1alpha1.ReadFailedReason, err.Error(), err)
		return result
	}
	held = slices.DeleteFunc(held, func(t *target.Object) bool {
		return governed.uids[t.GetUID()] || denied.uids[t.GetUID()] || want.Closed && governs(obj, &t.Unstructured, namedBy(&t.Unstructured))
	})
	want.Closed, want.decision = false, nil
	result.merge(r.settleAll(ctx, held, want))
	return result
}

// settleGoverned settles the targets of a Gate, as many as are due if they are
// being released at a pace.
func (r *GateReconciler) settleGoverned(ctx context.Context, obj *v1alpha1.Gate, targets []*target.Object, want order) *outcomes {
	var result *outcomes
	if want.Closed || obj.Spec.Release == nil {
		r.endRelease(obj)
		result = r.settleAll(ctx, targets, want)
	} else {
		result = r.settlePaced(ctx, obj, targets, want)
	}
	result.total = int64(len(targets))
	return result
}

// settleAll settles targets, several at once. Machines are passed over: they are
// not held, see refreshMachines.
func (r *GateReconciler) settleAll(ctx context.Context, targets []*target.Object, want order) *outcomes {
	result := &outcomes{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for _, obj := range targets {
		if isMachine(&obj.Unstructured) {
			continue
		}
		group.Go(func() error {
			outcome, recheck, err := r.settle(ctx, obj, want)
			mu.Lock()
			defer mu.Unlock()
			result.again(recheck)
			switch {
			case err != nil:
				result.fail(obj.GetKind(), obj.GetNamespace(), obj.GetName(), v1alpha1.WriteFailedReason, err.Error(),
					fmt.Errorf("%s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err))
			case outcome == target.OutcomeHeld:
				result.held++
			case outcome == target.OutcomeForeign:
				result.foreign++
			case outcome == target.OutcomeExempt:
				result.exempt++
			case outcome == target.OutcomeReleased:
				result.released++
			}
			return nil
		})
	}
	_ = group.Wait() // none returns an error
	return result
}

// settle takes the step that a target needs, if any. Each write is conditional
// on the version of the target that the step was decided on. It returns when the
// target needs to be looked at again, zero if events tell.
func (r *GateReconciler) settle(ctx context.Context, obj *target.Object, want order) (target.Outcome, time.Time, error) {
	for retry := 0; ; retry++ {
		if !obj.GetDeletionTimestamp().IsZero() {
			// Flux prunes nothing of an object that is deleted while suspended.
			return target.Untouched, time.Time{}, nil
		}
		outcome, recheck, err := r.step(ctx, obj, want)
		if !apierrors.IsConflict(err) || retry == conflictRetries {
			return outcome, recheck, err
		}
		if obj, err = r.reread(ctx, obj); obj == nil {
			return target.Untouched, time.Time{}, err
		}
	}
}

// reread reads a target from the API server. It is nil if it is gone, also if there
// is another of the same name: its own event brings that one here, if it matches.
func (r *GateReconciler) reread(ctx context.Context, obj *target.Object) (*target.Object, error) {
	latest := &target.Object{}
	latest.SetGroupVersionKind(obj.GroupVersionKind())
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(obj), latest)
	if err != nil || latest.GetUID() != obj.GetUID() {
		return nil, client.IgnoreNotFound(err)
	}
	target.Trim(&latest.Unstructured, us)
	return latest, nil
}

func (r *GateReconciler) step(ctx context.Context, obj *target.Object, want order) (target.Outcome, time.Time, error) {
	adapter := target.Of(&obj.Unstructured)
	state, holders := adapter.Observe(obj, us), heldBy(&obj.Unstructured)
	if !want.Closed && heldByNobody(&obj.Unstructured) {
		closed, err := r.closedElsewhere(ctx, &obj.Unstructured, want.Gate, want.now)
		if err != nil || closed {
			return target.Untouched, time.Time{}, err // that Gate will put its name to the hold
		}
		want.Gate = ""
	}
	plan, err := r.plan(ctx, obj, state, target.After(holders, want.Want), want)
	if err != nil {
		return target.Untouched, time.Time{}, err
	}
	step := target.Next(state, holders, want.Want, plan.Plan)

	// The condition is written while the target still names the Gate, so that
	// after a crash there is somebody left to mend it.
	release := step.Write && !step.Hold
	if step.Claim {
		if obj, err = r.apply(ctx, obj, target.Step{Hold: true, HeldBy: holders}, target.Lever(obj)); err != nil {
			return step.Outcome, time.Time{}, err
		}
	}
	if release {
		if obj, err = r.approve(ctx, obj, step, want, plan); err != nil {
			return step.Outcome, time.Time{}, err
		}
	}
	if step.Write {
		latest, err := r.apply(ctx, obj, step, plan.Lever)
		if apierrors.IsInvalid(err) && step.Hold {
			// Somebody left no room for the annotation. A hold in nobody's name is one.
			latest, err = r.apply(ctx, obj, target.Step{Hold: true}, plan.Lever)
		}
		if err != nil {
			return step.Outcome, time.Time{}, err
		}
		obj = latest
		r.tell(obj, state, step, want)
	}
	if !release {
		_, err = r.approve(ctx, obj, step, want, plan)
	}
	return step.Outcome, plan.Recheck, err
}

// apply writes who holds the target, by server-side apply of nothing else.
func (r *GateReconciler) apply(ctx context.Context, obj *target.Object, step target.Step, lever map[string]any) (*target.Object, error) {
	config := configOf(obj)
	if len(step.HeldBy) > 0 {
		config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: target.FormatHeldBy(step.HeldBy)})
	}
	if step.Hold {
		config.Object["spec"] = lever
	}
	return r.applied(ctx, config)
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

// applied applies a configuration and returns the target as it is then. What
// others have set is taken from them: that is what a hold is.
func (r *GateReconciler) applied(ctx context.Context, config *target.Object) (*target.Object, error) {
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	target.Trim(&config.Unstructured, us)
	return config, nil
}
