package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/internal/summary"
)

// retried lists the reasons of failures that a retry may resolve.
var retried = []string{v1alpha1.WriteFailedReason, v1alpha1.StatusWriteFailedReason, v1alpha1.ReadFailedReason}

// targetFailures returns the failures of targets, references, calendars and dependencies of a Gate. uncounted is the number of failures
// that are not included in the counts of targets. err reports the failures that a retry may resolve.
func (r *Reconciler) targetFailures(ctx context.Context, obj *v1alpha1.Gate, d decision) (failures []v1alpha1.TargetFailure, uncounted int64, err error) {
	var causes []string
	for _, f := range slices.Concat(r.Selector.Faults(ctx, obj), d.faults) {
		failures = append(failures, f.TargetFailure)
		if f.Cause != nil {
			causes = append(causes, f.Cause.Error())
		}
	}
	failures = append(failures, calendars.Faults(d.Decision)...)
	uncounted = int64(len(failures))
	for _, f := range r.Summary.Failures(summary.KeyFor(obj)) {
		failures = append(failures, v1alpha1.TargetFailure{
			Kind: f.Key.Kind, Namespace: f.Key.Namespace, Name: f.Key.Name, Reason: f.Reason, Message: f.Message,
		})
		if slices.Contains(retried, f.Reason) {
			causes = append(causes, f.Key.String()+": "+f.Message)
		}
	}
	switch len(causes) {
	case 0:
		return failures, uncounted, d.Err
	case 1:
		return failures, uncounted, errors.Join(d.Err, errors.New(causes[0]))
	default: // return the first of several errors in lexical order, so that the message does not alternate
		return failures, uncounted, errors.Join(d.Err, fmt.Errorf(msgTargetsFailed, len(causes), slices.Min(causes)))
	}
}

// targetCounts returns the numbers of targets for the status.
func targetCounts(s summary.Sums) v1alpha1.TargetCounts {
	return v1alpha1.TargetCounts{
		Total: s.Total, Held: s.Held, WouldHold: s.WouldHold, SuspendedByOthers: s.SuspendedByOthers, Exempt: s.Exempt, Overlaid: s.Overlaid,
		Pending: s.Pending, Failed: s.Failed,
	}
}

// failsNow returns whether targets have failed while the status reports no failures yet.
func failsNow(before *v1alpha1.Gate, s summary.Sums) bool {
	return s.Failed > 0 && (before.Status.Targets == nil || before.Status.Targets.Failed == 0)
}

// mayWrite returns when the status of a Gate may be written, zero for now.
func (r *Reconciler) mayWrite(obj *v1alpha1.Gate, s summary.Sums, now time.Time) time.Time {
	return r.State.mayWrite(obj, s.IsSettled(), enqueue.ProgressInterval*time.Duration(max(1, r.Summary.Unsettled()/enqueue.ProgressPerSecond)), now)
}
