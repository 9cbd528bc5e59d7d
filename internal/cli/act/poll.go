package act

import (
	"context"
	"time"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// ineffectiveError is returned if a request was made, but the Gate does not have the requested state.
type ineffectiveError string

func (e ineffectiveError) Error() string { return string(e) }

const (
	// handlingTimeout bounds how long to wait until the controller has handled a request. This usually takes milliseconds, unless the
	// controller is busy or starting.
	handlingTimeout = 15 * time.Second
	pollInterval    = 50 * time.Millisecond
)

const (
	errNotHandled = ineffectiveError("requested, but the controller has not handled it; is it running? For details: kubectl gate check")
	errReplaced   = ineffectiveError("another request has replaced this one before the controller handled it; request it again")
)

// poll calls done until it returns true or an error. After handlingTimeout, it returns errNotHandled.
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
		if err := t.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}
