package preview

import (
	"context"
	"errors"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

const (
	// PageLookups is for a preview that is made for others, such as a page or a feed. It takes less than half a second.
	PageLookups = 1_500_000

	// fewestLookups is what each of many Gates has: enough for three months of ten periods that begin every hour.
	fewestLookups = 40_000

	// anyLookups is for a preview without a bound of its own: a minute of the user's own processor.
	anyLookups = 200_000_000
)

// Within returns the same set, whose previews end with a context and make at most a number of lookups each, see [schedule.Budget]. The Gates
// of the set have equal shares of them, but never less than suffices for a usual Gate.
func (s *Set) Within(ctx context.Context, lookups int) *Set {
	bounded := *s
	bounded.ctx, bounded.lookups = ctx, lookups
	return &bounded
}

// budget returns what the preview of one Gate may use.
func (s *Set) budget() *schedule.Budget {
	ctx, lookups := s.ctx, s.lookups
	if ctx == nil {
		ctx, lookups = context.Background(), anyLookups
	}
	return schedule.NewBudget(ctx, max(fewestLookups, lookups/max(1, len(s.gates))))
}

// end returns what is incomplete about the preview of a Gate, whose context has not ended.
func (s *Set) end(g *v1alpha1.Gate, err error) (incomplete []Fault) {
	if spent := (*schedule.BudgetError)(nil); errors.As(err, &spent) {
		f := s.fault(g, "", "the preview ends at "+spent.Reached.UTC().Format(time.RFC3339)+
			", because the schedule changes too often: use fewer or longer periods, or preview a shorter time")
		f.Incomplete = true
		incomplete = append(incomplete, f)
	}
	return incomplete
}
