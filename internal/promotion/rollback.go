package promotion

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// maxRollbackAge is the maximum age of a request for a rollback. An older one may be a leftover, for example from a backup.
const maxRollbackAge = time.Hour

// FormatRollback returns the value of the annotation that requests a rollback to a revision.
func FormatRollback(g *v1alpha1.GatedSource, revision string, at time.Time) string {
	return annotations.Rollback.Format(annotations.Value{At: at, Keys: map[string]string{"uid": string(g.UID), "revision": revision}})
}

// Previous returns the revision that was promoted before the pinned one, empty if the status has none. It skips revisions that were rolled
// back.
func Previous(g *v1alpha1.GatedSource) string {
	s := &g.Status
	for i := 0; i < len(s.Promotions) && s.Pinned != nil; {
		p := s.Promotions[i]
		if !same(g.Spec.SourceRef.Kind, p.Revision, s.Pinned.Revision) {
			return p.Revision
		}
		if i++; p.Reason == v1alpha1.RolledBackReason { // continue before the promotion that this one returned to
			for i < len(s.Promotions) && !same(g.Spec.SourceRef.Kind, s.Promotions[i].Revision, p.Revision) {
				i++
			}
		}
	}
	return ""
}

// HandlesRollback returns whether the next decision grants, refuses or completes a rollback.
func HandlesRollback(g *v1alpha1.GatedSource, now time.Time) bool {
	request, _ := newRollback(g, now)
	return request != nil || isRollingBack(g)
}

// isRollingBack returns whether a rollback was granted, but the pinned source is not known to be written.
func isRollingBack(g *v1alpha1.GatedSource) bool {
	p := g.Status.Promoting
	return p != nil && p.Reason == v1alpha1.RolledBackReason && g.Status.Rollback != nil
}

// newRollback returns the unhandled request for a rollback in the annotations, nil if there is none. cause is the reason why the value
// does not count, empty if it counts or was handled.
func newRollback(g *v1alpha1.GatedSource, now time.Time) (request *v1alpha1.Rollback, cause string) {
	value, ok := g.Annotations[v1alpha1.RollbackRequestedAtAnnotation]
	if !ok {
		return nil, ""
	}
	v, err := annotations.Rollback.Parse(value)
	at, last := v.At.Truncate(time.Microsecond), g.Status.Rollback
	switch {
	case err != nil:
		return nil, "it " + err.Error()
	case last != nil && last.RequestedAt.Time.Equal(at) && last.Revision == v.Keys["revision"]:
		return nil, ""
	case v.Keys["uid"] != string(g.UID):
		return nil, msgOtherObject
	case last != nil && !at.After(last.RequestedAt.Time) && (last.Refused == "" || !isAhead(last.RequestedAt.Time, last.HandledAt.Time)):
		return nil, msgNotLater
	case at.Before(now.Add(-maxRollbackAge)):
		return nil, fmt.Sprintf(msgTooOld, maxRollbackAge)
	}
	return &v1alpha1.Rollback{
		RequestedAt: metav1.NewMicroTime(at), Revision: v.Keys["revision"], Gates: g.Annotations[v1alpha1.RollbackGatesAnnotation],
		RequestedBy: format.OneLine(g.Annotations[v1alpha1.RollbackRequestedByAnnotation], ledger.MaxRequestedBy),
		Message:     format.OneLine(g.Annotations[v1alpha1.RollbackReasonAnnotation], ledger.MaxMessage),
	}, ""
}

// isAhead returns whether a time is further in the future than the tolerated clock skew.
func isAhead(at, now time.Time) bool { return at.After(now.Add(ledger.MaxSkew)) }

// rollBack grants or refuses a new request for a rollback, or writes the revision of a granted one, for which the Gates are checked
// again. It returns false if there is neither. A granted request is stored in the status before it takes effect.
func (d *decision) rollBack() bool {
	s := &d.g.Status
	request, granted := s.Rollback, isRollingBack(d.g)
	if !granted {
		if request, _ = newRollback(d.g, d.Now); request == nil {
			return false
		}
	}
	refusal, waits := d.refusesRollback(request)
	if waits {
		return granted // decided after the next event
	}
	d.step.RollsBack = true
	if granted && refusal == "" {
		d.step.Write, d.step.Promotes = decode(s.Promoting.Spec.Raw), true
		return true
	}
	d.step.Again = true
	request.HandledAt, request.Refused = metav1.NewMicroTime(d.Now), refusal
	if s.Rollback = request; s.Pinned != nil {
		request.From = s.Pinned.Revision
	}
	switch {
	case refusal == "":
		next := pin(d.kind, decode(s.Pinned.Spec.Raw), request.Revision)
		s.Promoting = &v1alpha1.Pin{
			Revision: request.Revision, Digest: s.Pinned.Digest, Spec: runtime.RawExtension{Raw: encode(next)},
			Reason: v1alpha1.RolledBackReason, At: metav1.NewTime(d.Now),
		}
	case granted:
		s.Promoting = nil
		fallthrough
	default:
		d.step.Refused = request
	}
	return true
}

// refusesRollback returns why a request for a rollback is refused, empty if it is granted. waits is true if that cannot be decided yet.
func (d *decision) refusesRollback(r *v1alpha1.Rollback) (refusal string, waits bool) {
	s := &d.g.Status
	i := slices.IndexFunc(s.Promotions, func(p v1alpha1.Promotion) bool { return p.Revision == r.Revision })
	switch {
	case isAhead(r.RequestedAt.Time, d.Now):
		return fmt.Sprintf(msgRollbackAhead, format.Time(r.RequestedAt.Time), format.Time(d.Now)), false
	case d.g.Spec.Revision != "":
		return fmt.Sprintf(msgRollbackPinned, d.g.Spec.Revision), false
	case s.Pinned == nil || i < 0:
		return msgNotPromoted, false
	case same(d.kind, s.Pinned.Revision, r.Revision):
		return msgAlreadyPinned, false
	case !hasContent(d.kind) && !slices.ContainsFunc(s.Promotions, func(p v1alpha1.Promotion) bool {
		return p.Revision == r.Revision && p.Digest == s.Pinned.Digest
	}):
		return msgOtherChart, false
	case d.fault.reason == v1alpha1.SourceNotOursReason:
		return d.fault.message, false
	case d.Pinned != nil && d.Pinned.Deleted, d.Gates.Bars == nil:
		return "", true
	}
	return d.Gates.Bars(r.Gates, r.RequestedAt.Time)
}

// skips returns whether the newest revision is not promoted because a rollback has moved the pin since it was observed.
func (d *decision) skips() bool {
	s := &d.g.Status
	return s.Latest != nil && s.Latest.Skipped && d.g.RequiredApprovals() == 0 && d.g.Spec.Revision == ""
}

// rolledBack returns a message about the rollback in force.
func (d *decision) rolledBack() string {
	s, by := &d.g.Status, ""
	if p := s.Promotions[0]; p.Reason == v1alpha1.RolledBackReason {
		by = requestedBy(p.RequestedBy, p.Message)
	}
	return fmt.Sprintf(msgRolledBack, s.Pinned.Revision, by)
}

// requestedBy returns the requester of a rollback and the reason, as part of a sentence.
func requestedBy(by, reason string) string {
	text := ""
	if by != "" {
		text += ", requested by " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// refusedRollback returns a sentence about the value of the annotation if it does not count or was refused, otherwise empty.
func (d *decision) refusedRollback() string {
	value, ok := d.g.Annotations[v1alpha1.RollbackRequestedAtAnnotation]
	if _, cause := newRollback(d.g, d.Now); cause != "" {
		return fmt.Sprintf(msgRollbackIgnored, value, cause)
	}
	if r := d.g.Status.Rollback; ok && r != nil && r.Refused != "" {
		return " " + RefusedRollback(r)
	}
	return ""
}

// RefusedRollback returns a sentence about a refused request for a rollback.
func RefusedRollback(r *v1alpha1.Rollback) string {
	return fmt.Sprintf(msgRollbackRefused, r.Revision, requestedBy(r.RequestedBy, r.Message), r.Refused)
}
