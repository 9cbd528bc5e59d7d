package gate

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// RecordExceptions notes in the status of a Gate what its exceptions are at an
// instant, those that apply first, then those that will, then those that did, the
// last of them first. What there is no room for is left out from the end.
func RecordExceptions(g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) {
	before := slices.Clone(g.Status.Exceptions)
	for i := range before {
		if b := &before[i]; b.State == v1alpha1.ExceptionActive && !now.Before(b.ValidUntil.Time) {
			b.State, b.ExpiredAt = v1alpha1.ExceptionExpired, b.ValidUntil.DeepCopy()
		}
	}
	var records []v1alpha1.ExceptionRecord
	for _, e := range exceptions {
		if !IsOf(g, e) || !e.DeletionTimestamp.IsZero() {
			continue
		}
		r := v1alpha1.ExceptionRecord{
			Name: e.Name, Type: e.Spec.Type, ValidFrom: e.Spec.ValidFrom, ValidUntil: e.Spec.ValidUntil,
			State: DecideException(e, g, exceptions, now).State,
		}
		if r.State == v1alpha1.ExceptionExpired {
			r.ExpiredAt = r.ValidUntil.DeepCopy()
		}
		if i := slices.IndexFunc(before, func(b v1alpha1.ExceptionRecord) bool { return sameLife(b, r) }); i >= 0 {
			r.AppliedAt = before[i].AppliedAt
			if r.State == v1alpha1.ExceptionExpired {
				r.ExpiredAt = endedAt(before[i], r, now)
			}
			before = slices.Delete(before, i, i+1)
		}
		if r.State == v1alpha1.ExceptionActive && r.AppliedAt == nil {
			r.AppliedAt = &metav1.Time{Time: now}
		}
		records = append(records, r)
	}
	for _, r := range before {
		// It is gone. What never applied leaves no trace.
		if r.State != v1alpha1.ExceptionExpired && r.AppliedAt != nil {
			r.State, r.ExpiredAt = v1alpha1.ExceptionExpired, &metav1.Time{Time: earlier(r.ValidUntil.Time, now)}
		}
		if r.State == v1alpha1.ExceptionExpired {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, compareRecords)
	g.Status.Exceptions = records[:min(len(records), v1alpha1.MaxExceptions)]
}

// endedAt returns when an exception that is over ended: not when an edit that came
// later says so.
func endedAt(before, now v1alpha1.ExceptionRecord, at time.Time) *metav1.Time {
	switch before.State {
	case v1alpha1.ExceptionExpired:
		return before.ExpiredAt
	case v1alpha1.ExceptionActive:
		return &metav1.Time{Time: at}
	case v1alpha1.ExceptionPending:
	}
	return now.ExpiredAt
}

// sameLife returns whether a record of before is about the same exception as one of
// now, and not about one of that name that was over.
func sameLife(before, now v1alpha1.ExceptionRecord) bool {
	if before.Name != now.Name {
		return false
	}
	return before.State != v1alpha1.ExceptionExpired ||
		now.State == v1alpha1.ExceptionExpired && before.ValidUntil.Equal(&now.ValidUntil)
}

func compareRecords(a, b v1alpha1.ExceptionRecord) int {
	rank := map[v1alpha1.ExceptionState]int{v1alpha1.ExceptionActive: 0, v1alpha1.ExceptionPending: 1, v1alpha1.ExceptionExpired: 2}
	order := cmp.Compare(rank[a.State], rank[b.State])
	if order == 0 && a.State == v1alpha1.ExceptionExpired {
		order = endOf(b).Compare(endOf(a))
	}
	return cmp.Or(order, a.ValidFrom.Compare(b.ValidFrom.Time), cmp.Compare(a.Name, b.Name))
}

func endOf(r v1alpha1.ExceptionRecord) time.Time {
	if r.ExpiredAt == nil {
		return r.ValidUntil.Time
	}
	return r.ExpiredAt.Time
}
