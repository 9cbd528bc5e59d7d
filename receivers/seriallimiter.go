package receivers

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// serialLimiter runs functions one after the other, in order, at a limited rate. Callers wait instead of being refused, because
// unverified senders cannot be recognized yet.
type serialLimiter struct {
	running *semaphore.Weighted
	rate    *rate.Limiter
}

// keyWork limits the most expensive operation that any client can trigger: verifying a signature with the key of an issuer.
var keyWork = newSerialLimiter(keyWorkPerSecond)

func newSerialLimiter(perSecond rate.Limit) *serialLimiter {
	return &serialLimiter{running: semaphore.NewWeighted(1), rate: rate.NewLimiter(perSecond, 1)}
}

// do calls a function when it is its turn. It returns an error if the context ends first.
func (t *serialLimiter) do(ctx context.Context, f func()) error {
	err := t.running.Acquire(ctx, 1)
	if err == nil {
		defer t.running.Release(1)
		// Only one caller waits here at a time. If it gives up, later callers are not delayed.
		err = t.rate.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf(msgTooManyTokens, err)
	}
	f()
	return nil
}
