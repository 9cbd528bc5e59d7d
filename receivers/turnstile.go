package receivers

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// turnstile lets one after the other pass, in the order in which they come, and so many
// in a second. Who is early waits and is not refused: nobody knows yet who is a stranger.
type turnstile struct {
	one  *semaphore.Weighted
	rate *rate.Limiter
}

// keyWork is for what costs most of what anybody may ask for: to verify a signature with
// the key of an issuer.
var keyWork = newTurnstile(keyWorkPerSecond)

func newTurnstile(perSecond rate.Limit) *turnstile {
	return &turnstile{one: semaphore.NewWeighted(1), rate: rate.NewLimiter(perSecond, 1)}
}

// do calls a function once it is the turn of the caller, or returns an error if the
// context is done before.
func (t *turnstile) do(ctx context.Context, f func()) error {
	err := t.one.Acquire(ctx, 1)
	if err == nil {
		defer t.one.Release(1)
		// Who waits here is alone: one that gives up takes nothing from those behind it.
		err = t.rate.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("too many tokens are to be verified: %w", err)
	}
	f()
	return nil
}
