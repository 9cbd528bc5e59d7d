package receivers

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// serialLimiter runs functions one after the other, in order, with a maximum rate. Callers wait and are not refused, because unverified
// senders cannot be recognized yet.
type serialLimiter struct {
	running *semaphore.Weighted
	rate    *rate.Limiter
}

// keyWork limits the most expensive operation that any client may cause: verifying a signature with the key of an issuer.
var keyWork = newSerialLimiter(keyWorkPerSecond)

func newSerialLimiter(perSecond rate.Limit) *serialLimiter {
	return &serialLimiter{running: semaphore.NewWeighted(1), rate: rate.NewLimiter(perSecond, 1)}
}

// do calls a function in its turn, or returns an error if the context is done first.
func (t *serialLimiter) do(ctx context.Context, f func()) error {
	err := t.running.Acquire(ctx, 1)
	if err == nil {
		defer t.running.Release(1)
		// Only one caller waits here. If it gives up, it does not delay those behind it.
		err = t.rate.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf(msgTooManyTokens, err)
	}
	f()
	return nil
}
