package gate

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// maxOnlyBytes bounds the text about the targets of an exception or a request in the status.
const maxOnlyBytes = 256

// onlyText formats references for the status, as Only does. Selectors can have several thousand bytes.
func onlyText(refs []v1alpha1.TargetReference) string {
	return format.OneLine(Only(refs), maxOnlyBytes)
}

// exceptionRecords returns the records of the Gate's exceptions for its status. Exceptions that apply come first, followed by those over
// the limit, those that do not apply yet, and expired ones, latest first. An exception that applied several times has a record for each
// time. Records beyond the limit are dropped from the end.
func (in *Snapshot) exceptionRecords(now time.Time) []v1alpha1.ExceptionRecord {
	g := in.Gate
	before := slices.Clone(g.Status.Exceptions)
	for i := range before {
		if b := &before[i]; applies(b.Reason) && !now.Before(b.ValidUntil.Time) {
			b.Reason, b.ExpiredAt = v1alpha1.ExpiredReason, b.ValidUntil.DeepCopy()
		}
	}
	var records []v1alpha1.ExceptionRecord
	peers := in.peers(now)
	for _, e := range in.Exceptions {
		if !IsOf(g, e) || !e.DeletionTimestamp.IsZero() {
			continue
		}
		r := v1alpha1.ExceptionRecord{Name: e.Name, ValidFrom: e.Spec.ValidFrom, ValidUntil: e.Spec.ValidUntil}
		if e.HasTargets() {
			r.Only = onlyText(e.Spec.Targets)
		}
		if r.Reason = peers.reason(e); r.Reason == v1alpha1.InForceReason && slices.Contains(timetable.Excess(peers.counts), e) {
			r.Reason = v1alpha1.TooManyExceptionsReason
		}
		i := slices.IndexFunc(before, func(b v1alpha1.ExceptionRecord) bool { return sameInterval(b, r) })
		if i >= 0 {
			r.AppliedAt, r.ExpiredAt = before[i].AppliedAt, before[i].ExpiredAt
			before = slices.Delete(before, i, i+1)
		}
		switch {
		case applies(r.Reason) && r.AppliedAt == nil:
			r.AppliedAt = &metav1.Time{Time: now}
		case r.Reason == v1alpha1.ExpiredReason && r.ExpiredAt == nil && r.AppliedAt != nil:
			r.ExpiredAt = &metav1.Time{Time: now} // an edit ended it
		case r.Reason == v1alpha1.ExpiredReason && r.ExpiredAt == nil:
			r.ExpiredAt = r.ValidUntil.DeepCopy()
		}
		records = append(records, r)
	}
	for _, r := range before {
		if applies(r.Reason) {
			r.Reason, r.ExpiredAt = v1alpha1.ExpiredReason, &metav1.Time{Time: now}
		}
		if r.Reason == v1alpha1.ExpiredReason { // an exception that never applied needs no record
			records = append(records, r)
		}
	}
	slices.SortFunc(records, compareRecords)
	return records[:min(len(records), v1alpha1.MaxExceptions)]
}

// applies returns whether an exception with this reason applies, or fails closed because the Gate has too many exceptions.
func applies(reason string) bool {
	return reason == v1alpha1.InForceReason || reason == v1alpha1.TooManyExceptionsReason
}

// sameInterval returns whether the record now continues the record before. If an exception was interrupted, a new record starts.
func sameInterval(before, now v1alpha1.ExceptionRecord) bool {
	if before.Name != now.Name {
		return false
	}
	switch {
	case applies(before.Reason):
		return applies(now.Reason) || now.Reason == v1alpha1.ExpiredReason
	case before.Reason == v1alpha1.ExpiredReason:
		return now.Reason == v1alpha1.ExpiredReason && before.ValidUntil.Equal(&now.ValidUntil)
	default:
		return true
	}
}

func compareRecords(a, b v1alpha1.ExceptionRecord) int {
	order := cmp.Compare(rank(a.Reason), rank(b.Reason))
	if order == 0 && a.Reason == v1alpha1.ExpiredReason {
		order = endOf(b).Compare(endOf(a))
	}
	return cmp.Or(order, a.ValidFrom.Compare(b.ValidFrom.Time), cmp.Compare(a.Name, b.Name))
}

// rank returns the sort key of a record with this reason.
func rank(reason string) int {
	switch reason {
	case v1alpha1.InForceReason:
		return 0
	case v1alpha1.TooManyExceptionsReason:
		return 1
	case v1alpha1.ExpiredReason:
		return 3
	default:
		return 2
	}
}

func endOf(r v1alpha1.ExceptionRecord) time.Time {
	if r.ExpiredAt == nil {
		return r.ValidUntil.Time
	}
	return r.ExpiredAt.Time
}
