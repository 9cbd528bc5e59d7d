package act

import (
	"context"
	"time"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// inVainError says that a request was made, and that the Gate is not as it asks.
type inVainError string

func (e inVainError) Error() string { return string(e) }

const (
	// answerTimeout is how long the controller is given to look at a request: it takes milliseconds, unless it is busy or starts.
	answerTimeout = 15 * time.Second
	answerPoll    = 50 * time.Millisecond
)

const (
	errNoAnswer  = inVainError("requested, but the controller has not handled it; is it running? For details: kubectl gate check")
	errOvertaken = inVainError("another request has replaced this one before the controller handled it; request it again")
)

// poll asks until it is done, for as long as the controller is given to answer.
func poll(ctx context.Context, t *term.Terminal, done func() (bool, error)) error {
	deadline := t.Clock.Now().Add(answerTimeout)
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if t.Clock.Now().After(deadline) {
			return errNoAnswer
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.Clock.After(answerPoll):
		}
	}
}
