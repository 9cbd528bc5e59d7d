package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/patch"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	eventNormal  = corev1.EventTypeNormal
	eventWarning = corev1.EventTypeWarning
)

var patchOptions = []patch.Option{
	patch.WithOwnedConditions{Conditions: []string{
		v1alpha1.OpenedCondition, meta.ReadyCondition, meta.ReconcilingCondition, meta.StalledCondition,
	}},
	patch.WithFieldOwner(v1alpha1.FieldManager),
}

// withGeneration are patchOptions for a status that is of the spec as it is.
var withGeneration = append([]patch.Option{patch.WithStatusObservedGeneration{}}, patchOptions...)

// report writes a decision into the status of a Gate.
func report(obj *v1alpha1.Gate, d gate.Decision) {
	obj.Status.NextTransition = d.Next
	obj.Status.RequestedAt, obj.Status.ResetToDefaultAt = d.RequestedAt, d.ResetToDefaultAt
	mark := conditions.MarkFalse
	if d.State == v1alpha1.StateOpened {
		mark = conditions.MarkTrue
	}
	mark(obj, v1alpha1.OpenedCondition, d.Reason, "%s", d.Message)
	if len(d.Errors) == 0 {
		conditions.Delete(obj, meta.StalledCondition)
		return
	}
	cause := d.Errors.ToAggregate().Error()
	conditions.MarkStalled(obj, v1alpha1.InvalidSpecReason, "%s", cause)
	conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.InvalidSpecReason, "%s", cause)
}

// stateChanged returns whether the Gate is in another state than before, or in
// one for the first time.
func stateChanged(before, after *v1alpha1.Gate) bool {
	was := conditions.Get(before, v1alpha1.OpenedCondition)
	return was == nil || was.Status != conditions.Get(after, v1alpha1.OpenedCondition).Status
}

// summarize sets the conditions Ready and Reconciling from what came of the
// reconciliation and writes the status once more if that changed it.
func (r *GateReconciler) summarize(ctx context.Context, obj *v1alpha1.Gate, patcher *patch.SerialPatcher, cause error) error {
	failed := int64(0)
	if obj.Status.Targets != nil {
		failed = obj.Status.Targets.Failed
	}
	switch {
	case conditions.IsStalled(obj):
		conditions.Delete(obj, meta.ReconcilingCondition)
	case cause != nil:
		reason := v1alpha1.TargetsFailedReason
		if errors.Is(cause, errTimeUnknown) {
			reason = v1alpha1.TimeUnknownReason
		}
		conditions.MarkFalse(obj, meta.ReadyCondition, reason, "%s", cause)
		conditions.MarkReconciling(obj, meta.ProgressingWithRetryReason, "%s", cause)
	case failed > 0:
		first := obj.Status.Failures[0]
		conditions.Delete(obj, meta.ReconcilingCondition)
		conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.TargetsFailedReason, "%d failed, the last one %s %s/%s: %s",
			failed, first.Kind, first.Namespace, first.Name, first.Message)
	default:
		conditions.Delete(obj, meta.ReconcilingCondition)
		conditions.MarkTrue(obj, meta.ReadyCondition, meta.SucceededReason, "%d of %d targets held",
			obj.Status.Targets.Held, obj.Status.Targets.Total)
	}
	if v, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
		obj.Status.SetLastHandledReconcileRequest(v)
	}
	err := patcher.Patch(ctx, obj, withGeneration...)
	r.RecordReadiness(ctx, obj)
	r.RecordReconciling(ctx, obj)
	r.RecordStalled(ctx, obj)
	return err
}

// outcomes collects what became of the targets of a Gate. It is not safe for
// concurrent use.
type outcomes struct {
	total, held, foreign, exempt, released int64

	failures []v1alpha1.TargetFailure
	retry    []error
	// undecided is what kept the Gate from deciding, nil if nothing did.
	undecided error
	// recheck is when a target changes by itself, zero if none does.
	recheck time.Time
	// awaiting are the targets that wait for another Gate before they are let go.
	awaiting int
	// over means that the decision did not stand until all targets were settled.
	over bool
	// machines are the Machines among the targets.
	machines []*target.Object
}

// again notes that a target changes by itself at an instant, unless that is zero.
func (o *outcomes) again(at time.Time) {
	if o.recheck.IsZero() || !at.IsZero() && at.Before(o.recheck) {
		o.recheck = at
	}
}

// fail notes a failure. A cause is an error that a retry may mend.
func (o *outcomes) fail(kind, namespace, name, reason, message string, cause error) {
	o.failures = append(o.failures, v1alpha1.TargetFailure{
		Kind: kind, Namespace: namespace, Name: name, Reason: reason, Message: message,
	})
	if cause != nil {
		o.retry = append(o.retry, cause)
	}
}

// merge takes over the failures of others, and when they change. They are not
// counted as targets.
func (o *outcomes) merge(others *outcomes) {
	o.failures = append(o.failures, others.failures...)
	o.retry = append(o.retry, others.retry...)
	o.awaiting += others.awaiting
	o.again(others.recheck)
}

// add takes over others as targets of the Gate.
func (o *outcomes) add(others *outcomes) {
	o.merge(others)
	o.total, o.held = o.total+others.total, o.held+others.held
	o.foreign, o.exempt = o.foreign+others.foreign, o.exempt+others.exempt
}

func (o *outcomes) counts() *v1alpha1.TargetCounts {
	return &v1alpha1.TargetCounts{Total: o.total, Held: o.held, Foreign: o.foreign, Exempt: o.exempt, Failed: int64(len(o.failures))}
}

// err returns the errors to retry: of those of targets the first by text, so that the
// same failures read the same each time, and how many there are.
func (o *outcomes) err() error {
	switch len(o.retry) {
	case 0:
		return o.undecided
	case 1:
		return errors.Join(o.undecided, o.retry[0])
	}
	first := slices.MinFunc(o.retry, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(o.undecided, fmt.Errorf("%d targets failed, the first: %w", len(o.retry), first))
}

// report returns the failures for the status: the newest first, those that were
// there before with the time and in the order of then.
func (o *outcomes) report(before v1alpha1.GateStatus, now time.Time) []v1alpha1.TargetFailure {
	type identity struct{ kind, namespace, name, reason string }
	of := func(f v1alpha1.TargetFailure) identity { return identity{f.Kind, f.Namespace, f.Name, f.Reason} }
	ranks := map[identity]int{}
	for i, f := range before.Failures {
		ranks[of(f)] = i - len(before.Failures)
	}
	unknown := int64(0)
	for _, f := range o.failures {
		if ranks[of(f)] == 0 {
			unknown++
		}
	}
	// As many as did not fit in before are taken for those, whose time is lost.
	at := metav1.NewTime(now)
	if n := len(before.Failures); n > 0 && before.Targets != nil && unknown <= before.Targets.Failed-int64(n) {
		at = before.Failures[n-1].At
	}
	for i := range o.failures {
		f := &o.failures[i]
		f.At = at
		if rank := ranks[of(*f)]; rank < 0 {
			f.At = before.Failures[rank+len(before.Failures)].At
		}
	}
	slices.SortFunc(o.failures, func(a, b v1alpha1.TargetFailure) int {
		return cmp.Or(b.At.Compare(a.At.Time), cmp.Compare(ranks[of(a)], ranks[of(b)]), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return o.failures[:min(len(o.failures), v1alpha1.MaxFailures)]
}
