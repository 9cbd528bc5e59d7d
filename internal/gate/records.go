package gate

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// RecordExceptions notes in the status of a Gate what its exceptions are at an instant:
// those that apply, then those that will, then those that did, latest first. Each stretch
// of time in which one applied has its own record. The last ones are dropped if there is
// no room.
func RecordExceptions(g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) {
	before := slices.Clone(g.Status.Exceptions)
	for i := range before {
		if b := &before[i]; b.State == v1alpha1.ExceptionActive && !now.Before(b.ValidUntil.Time) {
			b.State, b.ExpiredAt = v1alpha1.ExceptionExpired, b.ValidUntil.DeepCopy()
		}
	}
	var records []v1alpha1.ExceptionRecord
	peers := peersOf(g, exceptions, now)
	for _, e := range exceptions {
		if !IsOf(g, e) || !e.DeletionTimestamp.IsZero() {
			continue
		}
		r := v1alpha1.ExceptionRecord{Name: e.Name, Type: e.Spec.Type, ValidFrom: e.Spec.ValidFrom, ValidUntil: e.Spec.ValidUntil}
		r.State, _ = peers.state(e)
		i := slices.IndexFunc(before, func(b v1alpha1.ExceptionRecord) bool { return sameStretch(b, r) })
		if i >= 0 {
			r.AppliedAt, r.ExpiredAt = before[i].AppliedAt, before[i].ExpiredAt
			before = slices.Delete(before, i, i+1)
		}
		switch {
		case r.State == v1alpha1.ExceptionActive && r.AppliedAt == nil:
			r.AppliedAt = &metav1.Time{Time: now}
		case r.State == v1alpha1.ExceptionExpired && r.ExpiredAt == nil && r.AppliedAt != nil:
			r.ExpiredAt = &metav1.Time{Time: now} // an edit ended it
		case r.State == v1alpha1.ExceptionExpired && r.ExpiredAt == nil:
			r.ExpiredAt = r.ValidUntil.DeepCopy()
		}
		records = append(records, r)
	}
	for _, r := range before {
		if r.State == v1alpha1.ExceptionActive {
			r.State, r.ExpiredAt = v1alpha1.ExceptionExpired, &metav1.Time{Time: now}
		}
		if r.State == v1alpha1.ExceptionExpired { // an exception that never applied leaves no trace
			records = append(records, r)
		}
	}
	slices.SortFunc(records, compareRecords)
	g.Status.Exceptions = records[:min(len(records), v1alpha1.MaxExceptions)]
}

// sameStretch returns whether a record of before goes on in one of now. An exception that
// is interrupted begins a new record.
func sameStretch(before, now v1alpha1.ExceptionRecord) bool {
	if before.Name != now.Name {
		return false
	}
	switch before.State {
	case v1alpha1.ExceptionActive:
		return now.State != v1alpha1.ExceptionPending
	case v1alpha1.ExceptionExpired:
		return now.State == v1alpha1.ExceptionExpired && before.ValidUntil.Equal(&now.ValidUntil)
	default:
		return true
	}
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
