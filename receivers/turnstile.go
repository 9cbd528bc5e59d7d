package receivers

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// serialLimiter lets callers pass one after the other, in the order in which they come, and
// only so many per second. An early one waits and is not refused: nobody knows yet who is
// a stranger.
type serialLimiter struct {
	running *semaphore.Weighted
	rate    *rate.Limiter
}

// keyWork is for the most expensive thing that anybody may ask for: to verify a signature
// with the key of an issuer.
var keyWork = newSerialLimiter(keyWorkPerSecond)

func newSerialLimiter(perSecond rate.Limit) *serialLimiter {
	return &serialLimiter{running: semaphore.NewWeighted(1), rate: rate.NewLimiter(perSecond, 1)}
}

// do calls a function when it is the caller's turn, or returns an error if the context is
// done first.
func (t *serialLimiter) do(ctx context.Context, f func()) error {
	err := t.running.Acquire(ctx, 1)
	if err == nil {
		defer t.running.Release(1)
		// Only one caller waits here. If it gives up, it takes nothing from those behind
		// it.
		err = t.rate.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("too many tokens are to be verified: %w", err)
	}
	f()
	return nil
}
