package preview

import (
	"context"
	"errors"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

const (
	// PageLookups bounds a preview on behalf of other users, for example for a web page or a calendar feed. Such a preview takes less than
	// half a second.
	PageLookups = 1_500_000

	// fewestLookups is the minimum number of lookups for a Gate. It is enough for three months of ten hourly periods.
	fewestLookups = 40_000

	// anyLookups bounds all other previews. They take at most about a minute.
	anyLookups = 200_000_000
)

// Within returns a copy of s whose previews end with ctx and make at most the given number of lookups, see [schedule.Budget]. The lookups
// are divided equally among the Gates, but each Gate gets at least fewestLookups.
func (s *Set) Within(ctx context.Context, lookups int) *Set {
	bounded := *s
	bounded.ctx, bounded.lookups = ctx, lookups
	return &bounded
}

// budget returns the budget for the preview of one Gate.
func (s *Set) budget() *schedule.Budget {
	ctx, lookups := s.ctx, s.lookups
	if ctx == nil {
		ctx, lookups = context.Background(), anyLookups
	}
	return schedule.NewBudget(ctx, max(fewestLookups, lookups/max(1, len(s.gates))))
}

// end returns a warning that the preview of a Gate is incomplete if err is a BudgetError, otherwise none.
func (s *Set) end(g *v1alpha1.Gate, err error) (incomplete []Fault) {
	if spent := (*schedule.BudgetError)(nil); errors.As(err, &spent) {
		f := s.fault(g, "", "the preview ends at "+spent.Reached.UTC().Format(time.RFC3339)+
			", because the schedule changes too often: use fewer or longer periods, or preview a shorter range")
		f.Incomplete = true
		incomplete = append(incomplete, f)
	}
	return incomplete
}
