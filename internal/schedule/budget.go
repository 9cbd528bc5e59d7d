package schedule

import (
	"context"
	"fmt"
	"time"
)

const (
	// DecisionLookups is the default budget of a plan. It suffices for a year of 100 periods that start and end twice a day. Even the worst
	// plan spends it in less than 50 ms.
	DecisionLookups = 150_000

	// leadLookups bounds the lookups for the leads of a plan, regardless of its budget. So the leads are the same in a decision, a preview and
	// an announcement, and lookups are left for the search.
	leadLookups = 75_000

	// patience is the number of lookups between two checks of the context.
	patience = 1024
)

// Budget bounds the number of period lookups of plans. It is not safe for concurrent use.
type Budget struct {
	ctx  context.Context //nolint:containedctx // a budget lasts as long as one request
	left int
	// within is the larger budget that this one is part of, nil if there is none. Lookups are charged to both.
	within *Budget
}

// NewBudget returns a budget with a number of lookups. It also counts as spent after its context has ended, which is checked every patience
// lookups.
func NewBudget(ctx context.Context, lookups int) *Budget {
	return &Budget{ctx: ctx, left: lookups}
}

// Err returns the error of the context.
func (b *Budget) Err() error { return b.ctx.Err() }

// part returns a budget with at most the given number of lookups, which are also charged to b.
func (b *Budget) part(lookups int) *Budget { return &Budget{ctx: b.ctx, left: lookups, within: b} }

// spend subtracts lookups. A nil budget is unlimited.
func (b *Budget) spend(lookups int) {
	for ; b != nil; b = b.within {
		before := b.left / patience
		if b.left -= lookups; b.left/patience != before && b.ctx.Err() != nil {
			b.left = -1
		}
	}
}

// spent returns whether no lookups are left.
func (b *Budget) spent() bool {
	for ; b != nil; b = b.within {
		if b.left <= 0 {
			return true
		}
	}
	return false
}

// BudgetError is the error of a search for transitions that ended early, because its budget was spent.
type BudgetError struct {
	// Reached is the instant at which the search ended. Transitions at or after it are unknown.
	Reached time.Time
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the schedule has too many edges: transitions from %s on are unknown, use fewer or longer periods", e.Reached.UTC().Format(time.RFC3339))
}
