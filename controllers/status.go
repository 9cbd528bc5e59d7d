package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

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
	cause := d.Errors.ToAggregate()
	conditions.MarkStalled(obj, v1alpha1.InvalidSpecReason, "%s", cause)
	conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.InvalidSpecReason, "%s", cause)
}

// stateChanged returns whether the Gate is in another state than before, or in
// one for the first time.
func stateChanged(before, after *v1alpha1.Gate) bool {
	was := conditions.Get(before, v1alpha1.OpenedCondition)
	return was == nil || was.Status != conditions.Get(after, v1alpha1.OpenedCondition).Status
}

// bringing says what becomes of the targets of a Gate by a state.
func bringing(obj *v1alpha1.Gate, state v1alpha1.State) string {
	switch {
	case obj.Audits():
		return "audit: looking at the targets"
	case state == v1alpha1.StateClosed:
		return "holding the targets"
	}
	return "releasing the targets"
}

// auditing says what a Gate with mode Audit would do with its targets.
func auditing(s tally.Sums) string {
	switch {
	case s.Held > 0:
		return fmt.Sprintf("audit: releasing targets, %d of %d to go", s.Held, s.Total)
	case !s.IsSettled():
		return fmt.Sprintf("audit: %d of %d targets to check", s.Pending, s.Total)
	}
	return fmt.Sprintf("audit: %d of %d targets would be held, nothing is", s.WouldHold, s.Total)
}

// outcome is what became of the targets of a Gate.
type outcome struct {
	sums tally.Sums
	// failures are those of targets, of references and of dependencies of the Gate.
	failures []v1alpha1.TargetFailure
	// empty says which references match nothing, and is empty if all match something.
	empty string
	// err is what another try may mend, nil if nothing is.
	err error
}

// retried are the reasons of failures of targets that another try may mend.
var retried = []string{v1alpha1.WriteFailedReason, v1alpha1.StatusWriteFailedReason, v1alpha1.ReadFailedReason}

// outcomeOf collects what became of the targets of a Gate.
func (r *GateReconciler) outcomeOf(ctx context.Context, obj *v1alpha1.Gate, d decision) outcome {
	o := outcome{sums: r.Tally.Sums(tallied(obj))}
	var causes []string
	for _, f := range slices.Concat(r.Selector.Faults(ctx, obj), d.faults) {
		o.failures = append(o.failures, f.TargetFailure)
		if f.cause != nil {
			causes = append(causes, f.cause.Error())
		}
	}
	o.failures = append(o.failures, calendarFaults(d.Decision)...)
	o.sums.Failed += int64(len(o.failures))
	for _, f := range r.Tally.Failures(tallied(obj)) {
		o.failures = append(o.failures, v1alpha1.TargetFailure{
			Kind: f.Key.Kind, Namespace: f.Key.Namespace, Name: f.Key.Name, Reason: f.Reason, Message: f.Message,
		})
		if slices.Contains(retried, f.Reason) {
			causes = append(causes, f.Key.String()+": "+f.Message)
		}
	}
	switch len(causes) {
	case 0:
		o.err = d.err
	case 1:
		o.err = errors.Join(d.err, errors.New(causes[0]))
	default: // the first by text, so that the same failures read the same each time
		o.err = errors.Join(d.err, fmt.Errorf("%d targets failed, the first: %s", len(causes), slices.Min(causes)))
	}
	return o
}

// failsNow returns whether the status of a Gate does not say yet that something has failed.
func failsNow(before *v1alpha1.Gate, s tally.Sums) bool {
	return s.Failed > 0 && (before.Status.Targets == nil || before.Status.Targets.Failed == 0)
}

// mayWrite returns when the status of a Gate may be written, zero for now.
func (r *GateReconciler) mayWrite(obj *v1alpha1.Gate, s tally.Sums, now time.Time) (at time.Time) {
	r.memory.with(obj, func(m *remembered) {
		switch since, interval := now.Sub(m.written), progressInterval*time.Duration(max(1, r.Tally.Unsettled()/progressPerSecond)); {
		case s.IsSettled():
			m.written = time.Time{}
		case since >= 0 && since < interval:
			at = m.written.Add(interval)
		default:
			m.written = now
		}
	})
	return at
}

// measure sets the metrics of a Gate. If all targets are as a scheduled transition wants them, it observes how late that
// was.
func (r *GateReconciler) measure(ctx context.Context, obj *v1alpha1.Gate, s tally.Sums) {
	r.RecordReadiness(ctx, obj)
	r.RecordReconciling(ctx, obj)
	r.RecordStalled(ctx, obj)
	r.GateMetrics.record(obj)
	if !s.IsSettled() || obj.Status.Release != nil && obj.Status.Release.NextAt != nil || verdict.ReleasesInWaves(obj) {
		return
	}
	r.memory.with(obj, func(m *remembered) {
		if m.changed {
			m.changed = false
			gateTeller{r.EventRecorder, r.Selector.Targets}.summary(obj, s, r.Clock.Now())
		}
		if m.due != nil {
			r.GateMetrics.settled(m.due.State, r.Clock.Since(m.due.At.Time))
			m.due = nil
		}
	})
}

// summarize sets the conditions Ready and Reconciling.
func summarize(obj *v1alpha1.Gate, d decision, o outcome) {
	switch {
	case conditions.IsStalled(obj):
		conditions.Delete(obj, meta.ReconcilingCondition)
	case o.err != nil:
		reason := v1alpha1.TargetsFailedReason
		if errors.Is(o.err, errTimeUnknown) {
			reason = v1alpha1.TimeUnknownReason
		}
		conditions.MarkFalse(obj, meta.ReadyCondition, reason, "%s", o.err)
		conditions.MarkReconciling(obj, meta.ProgressingWithRetryReason, "%s", o.err)
	case len(obj.Status.TargetFailures()) > 0:
		first := obj.Status.TargetFailures()[0]
		conditions.Delete(obj, meta.ReconcilingCondition)
		conditions.MarkFalse(obj, meta.ReadyCondition, v1alpha1.TargetsFailedReason, "%d failed, the last one %s %s/%s: %s",
			o.sums.Failed, first.Kind, first.Namespace, first.Name, first.Message)
	case conditions.IsTrue(obj, v1alpha1.ReleaseStoppedCondition):
		stop := conditions.Get(obj, v1alpha1.ReleaseStoppedCondition)
		conditions.Delete(obj, meta.ReconcilingCondition)
		conditions.MarkFalse(obj, meta.ReadyCondition, stop.Reason, "%s", stop.Message)
	case !o.sums.IsSettled():
		conditions.MarkUnknown(obj, meta.ReadyCondition, meta.ProgressingReason, "%s", progressText(obj, d.State, o.sums))
		conditions.MarkReconciling(obj, meta.ProgressingReason, "%s", progressText(obj, d.State, o.sums))
	case obj.Audits():
		conditions.Delete(obj, meta.ReconcilingCondition)
		conditions.MarkTrue(obj, meta.ReadyCondition, meta.SucceededReason, "%s", auditing(o.sums))
	default:
		conditions.Delete(obj, meta.ReconcilingCondition)
		reason, message := meta.SucceededReason, fmt.Sprintf("%d of %d targets held", o.sums.Held, o.sums.Total)
		if verdict.ReleasesInWaves(obj) {
			message = waveText(obj) + message
		}
		if o.empty != "" {
			reason, message = v1alpha1.NoTargetsReason, o.empty+"; "+message
		}
		conditions.MarkTrue(obj, meta.ReadyCondition, reason, "%s", message)
	}
}

// progressText returns a message about the progress of the targets.
func progressText(obj *v1alpha1.Gate, state v1alpha1.State, s tally.Sums) string {
	switch {
	case obj.Audits():
		return auditing(s)
	case state == v1alpha1.StateClosed:
		return fmt.Sprintf("holding %d of %d targets", s.Held, s.Total)
	}
	return fmt.Sprintf("releasing targets, %d of %d to go", s.Held, s.Total)
}

// newest returns failures for the status: the newest first, those that were there before with the time and in the order
// of then.
func newest(failures []v1alpha1.TargetFailure, before v1alpha1.GateStatus, now time.Time) []v1alpha1.TargetFailure {
	type identity struct{ kind, namespace, name, reason string }
	of := func(f v1alpha1.TargetFailure) identity { return identity{f.Kind, f.Namespace, f.Name, f.Reason} }
	known, ranks := before.TargetFailures(), map[identity]int{}
	for i, f := range known {
		ranks[of(f)] = i - len(known)
	}
	unknown := int64(0)
	for _, f := range failures {
		if ranks[of(f)] == 0 {
			unknown++
		}
	}
	// As many as did not fit in before are taken for those, whose time is lost.
	at := metav1.NewTime(now)
	if n := len(known); n > 0 && before.Targets != nil && unknown <= before.Targets.Failed-int64(n) {
		at = known[n-1].RecordedAt
	}
	for i := range failures {
		f := &failures[i]
		f.RecordedAt = at
		if rank := ranks[of(*f)]; rank < 0 {
			f.RecordedAt = known[rank+len(known)].RecordedAt
		}
	}
	slices.SortStableFunc(failures, func(a, b v1alpha1.TargetFailure) int {
		return cmp.Or(b.RecordedAt.Compare(a.RecordedAt.Time), cmp.Compare(ranks[of(a)], ranks[of(b)]), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return failures[:min(len(failures), v1alpha1.MaxFailures)]
}
