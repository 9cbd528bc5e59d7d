package act

import (
	"context"
	"time"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// ineffectiveError says that a request was made, and that the Gate is not as it asks.
type ineffectiveError string

func (e ineffectiveError) Error() string { return string(e) }

const (
	// handlingTimeout is how long the controller is given to look at a request: it takes milliseconds, unless it is busy or starts.
	handlingTimeout = 15 * time.Second
	pollInterval    = 50 * time.Millisecond
)

const (
	errNotHandled = ineffectiveError("requested, but the controller has not handled it; is it running? For details: kubectl gate check")
	errReplaced   = ineffectiveError("another request has replaced this one before the controller handled it; request it again")
)

// poll asks until it is done, for as long as the controller is given to answer.
func poll(ctx context.Context, t *term.Terminal, done func() (bool, error)) error {
	deadline := t.Clock.Now().Add(handlingTimeout)
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if t.Clock.Now().After(deadline) {
			return errNotHandled
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.Clock.After(pollInterval):
		}
	}
}
