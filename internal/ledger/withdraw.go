package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
)

// Withdraws returns whether a request with this window only withdraws requests for the opposite action. The window of such a request is
// zero.
func Withdraws(window *v1alpha1.Duration) bool { return window != nil && window.Duration == 0 }

// opposite returns the other action.
func opposite(action v1alpha1.RequestAction) v1alpha1.RequestAction {
	if action == v1alpha1.RequestOpen {
		return v1alpha1.RequestClose
	}
	return v1alpha1.RequestOpen
}

// withdraw ends the opposite requests in force, under the same rules as any other request. If none is in force, it drops waiting and
// planned open requests, or planned close requests of the same requester, but never close requests of other users. An old value that Flux
// has restored drops nothing.
func (l *Ledger) withdraw(r v1alpha1.AcceptedRequest, now time.Time) error {
	if r.RequestedAt.After(now.Add(MaxSkew)) {
		return errors.New(msgWithdrawalPlanned)
	}
	inForce := l.withdrawable(&r, now)
	if lacks := l.lacks(&r); lacks > 0 && !inForce {
		return fmt.Errorf(msgWithdrawalNeedsApproval, format.Count(lacks, "approval"))
	}
	if inForce {
		return l.beginOrWait(r, now)
	}
	planned := slices.DeleteFunc(slices.Clone(l.planned), func(other v1alpha1.AcceptedRequest) bool {
		if !includes(r.Targets, other.Targets) {
			return false
		}
		if other.Action == v1alpha1.RequestOpen {
			return r.Action == v1alpha1.RequestClose && r.RequestedAt.After(other.AcceptedAt.Add(-MaxSkew))
		}
		return r.Action == v1alpha1.RequestOpen && other.RequestedBy == r.RequestedBy && r.RequestedAt.After(other.AcceptedAt.Time)
	})
	waiting := slices.DeleteFunc(slices.Clone(l.waiting), func(other v1alpha1.AcceptedRequest) bool {
		return r.Action == v1alpha1.RequestClose && includes(r.Targets, other.Targets) && r.RequestedAt.After(other.AcceptedAt.Add(-MaxSkew))
	})
	if len(planned) == len(l.planned) && len(waiting) == len(l.waiting) {
		return fmt.Errorf(msgNothingToWithdraw, opposite(r.Action))
	}
	l.planned, l.waiting = planned, waiting
	return nil
}
