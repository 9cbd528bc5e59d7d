package gate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// maxRefused bounds the error of a refused request in the history, in bytes.
const maxRefused = 512

// history returns the history of a Gate with new entries for the change of state, for the handled requests, accepted or refused, and for
// exceptions with targets that begin or cease to determine a state. The request that changed the state has no entry of its own.
func history(before, g *v1alpha1.Gate, d Decision, handled []ledger.Request, now time.Time, changed bool) []v1alpha1.HistoryEntry {
	at, entries := metav1.NewTime(now), overlayEntries(before, g, metav1.NewTime(now))
	entries = append(entries, g.Status.History...)
	for _, r := range handled {
		if !changed || r.Err != nil || !r.Is(d.Request) {
			entries = append([]v1alpha1.HistoryEntry{requestEntry(g, r, at)}, entries...)
		}
	}
	if changed {
		entries = append([]v1alpha1.HistoryEntry{stateEntry(d, at)}, entries...)
	}
	return bounded(entries)
}

// overlayEntries returns the entries about overlays of exceptions that began or ended between two statuses. Those of requests have the
// entries of the requests.
func overlayEntries(before, after *v1alpha1.Gate, at metav1.Time) (entries []v1alpha1.HistoryEntry) {
	started, ended := OverlayChanges(before, after)
	for _, o := range started {
		if o.Exception != "" {
			entries = append(entries, v1alpha1.HistoryEntry{
				At: at, State: o.State, Reason: v1alpha1.OverlayStartedReason, Exception: o.Exception, Targets: onlyText(references(o.Targets)), Until: o.Until.DeepCopy(),
			})
		}
	}
	for _, o := range ended {
		if o.Exception != "" {
			entries = append(entries, v1alpha1.HistoryEntry{At: at, Reason: v1alpha1.OverlayEndedReason, Exception: o.Exception, Targets: onlyText(references(o.Targets))})
		}
	}
	return entries
}

// withPasses adds entries about passes to a history, ordered by time. Entries older than the whole history are dropped, because they have
// already been evicted.
func withPasses(before, entries []v1alpha1.HistoryEntry) []v1alpha1.HistoryEntry {
	history := slices.Clone(before)
	if len(history) == 0 {
		return before
	}
	oldest := history[len(history)-1].At
	for _, e := range entries {
		e.At = metav1.NewTime(e.At.Truncate(time.Second))
		known := slices.ContainsFunc(history, func(h v1alpha1.HistoryEntry) bool {
			return h.Target == e.Target && h.Reason == e.Reason && h.At.Equal(&e.At)
		})
		if known || e.At.Before(&oldest) {
			continue
		}
		i := slices.IndexFunc(history, func(h v1alpha1.HistoryEntry) bool { return isAbove(e, h) })
		if i < 0 {
			i = len(history)
		}
		history = slices.Insert(history, i, e)
	}
	return bounded(history)
}

// isAbove returns whether the entry of a pass is listed above another entry. Passes of the same second are ordered by name, so that a full
// history always drops the same ones.
func isAbove(pass, other v1alpha1.HistoryEntry) bool {
	if !other.At.Equal(&pass.At) {
		return other.At.Before(&pass.At)
	}
	return other.Target == "" || cmp.Or(strings.Compare(pass.Target, other.Target), strings.Compare(pass.Reason, other.Reason)) < 0
}

func stateEntry(d Decision, at metav1.Time) v1alpha1.HistoryEntry {
	period, exception := Names(d.Reason, d.By)
	e := v1alpha1.HistoryEntry{At: at, State: d.State, Reason: d.Reason, Period: period, Exception: exception}
	if d.Next != nil {
		e.Until = d.Next.At.DeepCopy()
	}
	if r := d.Request; r != nil {
		e.Action, e.RequestedAt, e.RequestedBy, e.Message = r.Action, &metav1.MicroTime{Time: r.At}, r.By, r.Reason
		e.ApprovedBy, e.Emergency = r.Approvers, r.Emergency
	}
	return e
}

func requestEntry(g *v1alpha1.Gate, r ledger.Request, at metav1.Time) v1alpha1.HistoryEntry {
	e := v1alpha1.HistoryEntry{At: at, Reason: r.EventReason(), Action: r.Action, RequestedBy: r.By, Message: r.Reason, ApprovedBy: r.Approvers, Emergency: r.Emergency}
	if !r.At.IsZero() {
		e.RequestedAt = &metav1.MicroTime{Time: r.At}
	}
	if r.Targets != nil {
		e.Targets = onlyText(references(v1alpha1.RequestOverlayTargets(r.Targets)))
	}
	switch end := r.End(g.Spec.Window); {
	case r.Err != nil:
		e.Refused = format.OneLine(r.Err.Error(), maxRefused)
	case r.ApprovedBy == "" && e.Reason != v1alpha1.RequestWithdrawnReason && !end.IsZero():
		e.Until = &metav1.Time{Time: end}
	}
	return e
}

// bounded returns the entries that fit into the history. Passes and exceptions with targets get at most half of the space, so that they do
// not displace openings and closings of the Gate.
func bounded(history []v1alpha1.HistoryEntry) (kept []v1alpha1.HistoryEntry) {
	all := historyLimit{v1alpha1.MaxHistory, v1alpha1.MaxHistoryBytes}
	part := historyLimit{v1alpha1.MaxHistory / 2, v1alpha1.MaxHistoryBytes / 2}
	for _, e := range history {
		isPart := e.Target != "" || e.Reason == v1alpha1.OverlayStartedReason || e.Reason == v1alpha1.OverlayEndedReason
		if isPart && !part.takes(e) {
			continue
		}
		if !all.takes(e) {
			break
		}
		kept = append(kept, e)
	}
	return kept
}

// historyLimit is the space left in a history, in entries and in bytes.
type historyLimit struct{ entries, bytes int }

// takes reserves space for an entry. It returns false if there is not enough, and then also for all later entries.
func (r *historyLimit) takes(e v1alpha1.HistoryEntry) bool {
	r.entries--
	r.bytes -= len(e.Target) + len(e.Targets) + len(e.DecidedBy()) + len(e.RequestedBy) + len(e.Message) + len(e.ApprovedBy) + len(e.Refused)
	return r.entries >= 0 && r.bytes >= 0
}
