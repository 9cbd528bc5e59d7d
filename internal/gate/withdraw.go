package gate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// withdraws returns whether a request with a window asks for nothing itself: it lasts no time, and ends those for the opposite action.
func withdraws(window *v1alpha1.Duration) bool { return window != nil && window.Duration == 0 }

func opposite(action v1alpha1.RequestAction) v1alpha1.RequestAction {
	if action == v1alpha1.RequestOpen {
		return v1alpha1.RequestClose
	}
	return v1alpha1.RequestOpen
}

// withdraw ends the requests for the opposite action that are in force, by the rules by which a request that lasts would. If none is, it
// drops those that wait for approval and planned ones: opens, and those closes that the same person has planned. Nobody lifts what others have planned, and an old value
// that Flux puts back drops nothing.
func (c *course) withdraw(r v1alpha1.AcceptedRequest, now time.Time) error {
	if r.RequestedAt.After(now.Add(maxSkew)) {
		return errors.New("is refused, a withdrawal takes effect at once: its time must not be in the future")
	}
	inForce := c.isClosed(now)
	if lacks := c.lacks(&r); lacks > 0 && !inForce {
		return fmt.Errorf("is refused, the gate requires %s, which can only withdraw a close request in force", plural(lacks, "approval"))
	}
	if r.Action == v1alpha1.RequestClose {
		inForce = c.open != nil && c.open.lasts(now)
	}
	if inForce {
		return c.beginOrWait(r, now)
	}
	planned := slices.DeleteFunc(slices.Clone(c.planned), func(other v1alpha1.AcceptedRequest) bool {
		if other.Action == v1alpha1.RequestOpen {
			return r.Action == v1alpha1.RequestClose && r.RequestedAt.After(other.AcceptedAt.Add(-maxSkew))
		}
		return r.Action == v1alpha1.RequestOpen && other.RequestedBy == r.RequestedBy && r.RequestedAt.After(other.AcceptedAt.Time)
	})
	waiting := slices.DeleteFunc(slices.Clone(c.waiting), func(other v1alpha1.AcceptedRequest) bool {
		return r.Action == v1alpha1.RequestClose && r.RequestedAt.After(other.AcceptedAt.Add(-maxSkew))
	})
	if len(planned) == len(c.planned) && len(waiting) == len(c.waiting) {
		return fmt.Errorf("is refused, there is no %s request to withdraw", opposite(r.Action))
	}
	c.planned, c.waiting = planned, waiting
	return nil
}
