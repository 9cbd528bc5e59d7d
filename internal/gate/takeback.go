package gate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// takesBack returns whether a request with a window asks for nothing itself: it lasts no time, and ends those for the opposite action.
func takesBack(window *metav1.Duration) bool { return window != nil && window.Duration == 0 }

func opposite(action v1alpha1.RequestAction) v1alpha1.RequestAction {
	if action == v1alpha1.RequestOpen {
		return v1alpha1.RequestClose
	}
	return v1alpha1.RequestOpen
}

// takeBack ends the requests for the opposite action, by the rules by which a request that lasts would. Of those that are planned it
// drops all opens, and of closes only those of the same person: nobody lifts what others have planned.
func (c *course) takeBack(r v1alpha1.AcceptedRequest, now time.Time) error {
	if r.RequestedAt.After(now.Add(maxSkew)) {
		return errors.New("is refused, what is taken back is taken back at once: its time must not be in the future")
	}
	planned := slices.DeleteFunc(slices.Clone(c.planned), func(other v1alpha1.AcceptedRequest) bool {
		return other.Action != r.Action && (other.Action == v1alpha1.RequestOpen || other.By == r.By)
	})
	lasts := func(s *inForce) bool { return s.lasts(now) }
	inForce := slices.ContainsFunc(c.closes, lasts)
	if r.Action == v1alpha1.RequestClose {
		inForce = c.open != nil && c.open.lasts(now)
	}
	if !inForce && len(planned) == len(c.planned) {
		return fmt.Errorf("is refused, there is no %s request to take back", opposite(r.Action))
	}
	if inForce {
		if err := c.begin(r, now); err != nil {
			return err
		}
	}
	c.planned = planned
	return nil
}
