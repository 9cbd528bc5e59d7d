// Package budget bounds how much of the time some work takes, so that it leaves the processor to the rest of the program.
package budget

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// Budget is the time of some work. Each piece waits until those before it have taken no more than their share of the time. Nil is for work
// that never waits.
type Budget struct {
	// limiter has a token for each microsecond of work. Work that took longer than there were tokens leaves a debt.
	limiter *rate.Limiter
	// whole is the budget of which this one is a part, or nil.
	whole *Budget
}

// New returns the budget of work that takes at most a share of the time, a number of processors, and before it waits for the first time as much as burst.
func New(share float64, burst time.Duration) *Budget {
	return &Budget{limiter: rate.NewLimiter(rate.Limit(share*float64(time.Second/time.Microsecond)), int(burst.Microseconds()))}
}

// Half returns the budget of one who may use at most half of b, and leaves the other half to others. Its work counts in both.
func (b *Budget) Half() *Budget {
	if b == nil {
		return nil
	}
	return &Budget{rate.NewLimiter(b.limiter.Limit()/2, b.limiter.Burst()/2), b}
}

// Unused returns whether no work has left a trace in b, so that a new budget would be the same.
func (b *Budget) Unused() bool { return b == nil || b.limiter.Tokens() >= float64(b.limiter.Burst()) }

// Wait waits until the next piece of work may begin. It returns the error of a context that has ended, and another one at once if that would
// be before the work may begin.
func (b *Budget) Wait(ctx context.Context) error {
	if b == nil {
		return ctx.Err()
	}
	err := b.limiter.WaitN(ctx, 1)
	if err == nil && b.whole != nil {
		return b.whole.Wait(ctx)
	}
	if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) { //nolint:forbidigo // the deadline is of the same clock, it decides nothing
		return context.DeadlineExceeded // the limiter may see that before the context does
	}
	return err
}

// Do does a piece of work, and notes how long it took.
func (b *Budget) Do(work func()) {
	begin := time.Now()                          //nolint:forbidigo // the limiter reads the same clock, it decides nothing
	defer func() { b.Took(time.Since(begin)) }() //nolint:forbidigo // as above
	work()
}

// longest is how many times the burst of the whole a piece of work counts at most: a process that was stopped meanwhile has not worked.
const longest = 10

// Took says how long a piece of work took.
func (b *Budget) Took(d time.Duration) {
	if b == nil {
		return
	}
	now := time.Now() //nolint:forbidigo // as above
	whole, burst := b, b.limiter.Burst()
	for whole.whole != nil {
		whole = whole.whole
	}
	for left := min(int(d.Microseconds()), longest*whole.limiter.Burst()); left > 0; left -= burst {
		b.limiter.ReserveN(now, min(left, burst)) // it reserves no more than that at once
	}
	b.whole.Took(d)
}
