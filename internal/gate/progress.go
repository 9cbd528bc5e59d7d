package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Progress holds the results of reconciling the targets of a Gate.
type Progress struct {
	// Targets counts the targets. Settled is true if all of them have the desired state or have failed.
	Targets v1alpha1.TargetCounts
	Settled bool
	// Failures lists the failures of targets, references, calendars and dependencies.
	Failures []v1alpha1.TargetFailure
	// Err is an error that causes a retry of the reconciliation, nil if there is none.
	Err error
	// Passes are history entries about passes.
	Passes []v1alpha1.HistoryEntry
	// Release is the progress of the release, nil if there is none. Stop is the reason why the release has stopped, zero if it has not.
	Release *v1alpha1.ReleaseStatus
	Stop    Stop
	// Announced lists the announced transitions.
	Announced []v1alpha1.Announcement
	// Unmatched is a message about references that match nothing, empty if all match.
	Unmatched string
	// Applier is a message about the objects that apply the Gate and are held by it, empty if there are none, and nil if that is unknown.
	Applier *string
	// HandledReconcileAt is the reconcile request that was handled, empty if there was no new one.
	HandledReconcileAt string
}

// Stop is the reason and the message of the condition ReleaseStopped. It is zero while the release has not stopped.
type Stop struct{ Reason, Message string }

// CurrentStop returns why a release has stopped, from the status of a Gate.
func CurrentStop(g *v1alpha1.Gate) Stop {
	if stopped := conditions.Get(g, v1alpha1.ReleaseStoppedCondition); stopped != nil {
		return Stop{stopped.Reason, stopped.Message}
	}
	return Stop{}
}

// record stores the progress in the status after a decision.
func (p *Progress) record(r *Resolution, g *v1alpha1.Gate) {
	s := &g.Status
	if p.HandledReconcileAt != "" {
		s.SetLastHandledReconcileRequest(p.HandledReconcileAt)
	}
	s.Memory.Announced, s.Release = p.Announced, p.Release
	s.History = withPasses(s.History, p.Passes)
	s.Targets = &v1alpha1.TargetStatus{TargetCounts: p.Targets, Failures: newest(p.Failures, r.snapshot.Gate.Status, r.At)}
	setIf(g, v1alpha1.ReleaseStoppedCondition, p.Stop.Reason, p.Stop.Message)
	if p.Applier != nil {
		reason := ""
		if *p.Applier != "" {
			reason = v1alpha1.HoldsItsOwnSourceCondition
		}
		setIf(g, v1alpha1.HoldsItsOwnSourceCondition, reason, *p.Applier)
	}
	p.summarize(r, g)
}

// setIf sets a condition to True, or removes it if the reason is empty.
func setIf(g *v1alpha1.Gate, condition, reason, message string) {
	if reason == "" {
		conditions.Delete(g, condition)
		return
	}
	conditions.MarkTrue(g, condition, reason, "%s", message)
}

// summarize sets the conditions Ready and Reconciling.
func (p *Progress) summarize(r *Resolution, g *v1alpha1.Gate) {
	switch text := p.text(g, r.State); {
	case conditions.IsStalled(g):
		conditions.Delete(g, meta.ReconcilingCondition)
	case p.Err != nil:
		reason := v1alpha1.TargetsFailedReason
		if errors.Is(p.Err, ErrTimeUnknown) {
			reason = v1alpha1.TimeUnknownReason
		}
		conditions.MarkFalse(g, meta.ReadyCondition, reason, "%s", p.Err)
		conditions.MarkReconciling(g, meta.ProgressingWithRetryReason, "%s", p.Err)
	case len(g.Status.TargetFailures()) > 0:
		first := g.Status.TargetFailures()[0]
		conditions.Delete(g, meta.ReconcilingCondition)
		conditions.MarkFalse(g, meta.ReadyCondition, v1alpha1.TargetsFailedReason, msgFailed,
			p.Targets.Failed, first.Kind, first.Namespace, first.Name, first.Message)
	case p.Stop != Stop{}:
		conditions.Delete(g, meta.ReconcilingCondition)
		conditions.MarkFalse(g, meta.ReadyCondition, p.Stop.Reason, "%s", p.Stop.Message)
	case !p.Settled:
		conditions.MarkUnknown(g, meta.ReadyCondition, meta.ProgressingReason, "%s", text)
		conditions.MarkReconciling(g, meta.ProgressingReason, "%s", text)
	case p.Unmatched != "" && !g.Audits():
		conditions.Delete(g, meta.ReconcilingCondition)
		conditions.MarkTrue(g, meta.ReadyCondition, v1alpha1.NoTargetsReason, "%s; %s", p.Unmatched, text)
	default:
		conditions.Delete(g, meta.ReconcilingCondition)
		conditions.MarkTrue(g, meta.ReadyCondition, meta.SucceededReason, "%s", text)
	}
}

// text returns a message about the progress of the targets.
func (p *Progress) text(g *v1alpha1.Gate, state v1alpha1.State) string {
	switch t := p.Targets; {
	case g.Audits() && t.Held > 0:
		return fmt.Sprintf(msgAuditReleasing, t.Held, t.Total)
	case g.Audits() && !p.Settled:
		return fmt.Sprintf(msgAuditChecking, t.Pending, t.Total)
	case g.Audits():
		return fmt.Sprintf(msgAudited, t.WouldHold, t.Total)
	case !p.Settled && state == v1alpha1.StateClosed:
		return fmt.Sprintf(msgHolding, t.Held, t.Total)
	case !p.Settled:
		return fmt.Sprintf(msgReleasing, t.Held, t.Total)
	default:
		return waveText(g) + fmt.Sprintf(msgHeld, t.Held, t.Total)
	}
}

// startText returns a message about the targets right after a decision, when their progress is unknown.
func startText(g *v1alpha1.Gate, state v1alpha1.State) string {
	switch {
	case g.Audits():
		return msgAuditStart
	case state == v1alpha1.StateClosed:
		return msgHoldStart
	}
	return msgReleaseStart
}

// waveText returns a message about the current wave, for the condition Ready.
func waveText(g *v1alpha1.Gate) string {
	if !ReleasesInWaves(g) || g.Status.Release == nil || g.Status.Release.Waves == nil || g.Status.Release.Waves.OpenedAt == nil {
		return ""
	}
	w := g.Status.Release.Waves
	text := fmt.Sprintf(msgWave, w.Current, w.Ready, w.Total)
	names := WaveNames(g)
	if i := slices.Index(names, w.Current); w.ReadySince != nil && i >= 0 && i < len(names)-1 {
		soak := g.Spec.Release.Waves[i].Soak.Or(0)
		text += fmt.Sprintf(msgNextWave, names[i+1], w.ReadySince.Add(soak).UTC().Format(time.RFC3339))
	}
	return text + "; "
}

// newest returns the failures for the status, newest first. Failures that are already in the status keep their times and their order.
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
	// Failures that did not fit into the status have lost their times and count as old.
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
