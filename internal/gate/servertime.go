package gate

import (
	"errors"
	"fmt"
	"time"
)

const (
	// serverPrecision is the precision of the time that the API server returns, which is always rounded down.
	serverPrecision = time.Second

	// MaxPoll and minPoll bound the polling interval for an instant that the API server reaches within the same second.
	MaxPoll = 100 * time.Millisecond
	minPoll = 5 * time.Millisecond

	// reportedSkew is the smallest clock difference that is reported.
	reportedSkew = 500 * time.Millisecond

	// ClocksDiffer is the end of the message of a Gate if clock skew delays its opening or closes it early.
	ClocksDiffer = "the clocks of the controller and of the API server differ"
	clocksDiffer = ", " + ClocksDiffer
)

// ErrTimeUnknown means that a Gate cannot open because the API server did not return its time.
var ErrTimeUnknown = errors.New("the API server does not return its time")

// ServerTime is the time that the API server returned.
type ServerTime struct {
	// RequestedAt and ReceivedAt are the times of the request and of the response by the controller's clock.
	RequestedAt, ReceivedAt time.Time
	// Reported is the time in the response, rounded down to the second.
	Reported time.Time
	// Err is the error of the request, nil if it succeeded.
	Err error
}

// Unknown returns ErrTimeUnknown with its cause, nil if the API server returned its time.
func (t *ServerTime) Unknown() error {
	if t.Err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrTimeUnknown, t.Err)
}

// Ahead returns a lower bound of how far the controller's clock is ahead of the API server's. It is negative if the controller's clock
// is certainly behind, and zero if the two may agree.
func (t *ServerTime) Ahead() time.Duration {
	if ahead := t.RequestedAt.Sub(t.Reported) - serverPrecision; ahead > 0 {
		return ahead
	}
	return min(t.ReceivedAt.Sub(t.Reported), 0)
}

// reached returns now, limited to the times that the API server's clock may have had when it responded. A request of the same second
// therefore never counts as later, and the next opening begins at a whole second.
func (t *ServerTime) reached(now time.Time) time.Time {
	switch last := t.Reported.Add(serverPrecision - 1); {
	case now.Before(t.Reported):
		return t.Reported
	case now.After(last):
		return last
	}
	return now
}

// Until returns how long to wait before reading the API server's time again, when it may have reached the instant at. The fraction of the
// reported second is unknown, but the instant is at most as far away as the controller's clock is ahead. So the first wait is short, and
// each further wait doubles the total.
func (t *ServerTime) Until(at time.Time) time.Duration {
	left := at.Sub(t.Reported)
	switch {
	case left > serverPrecision:
		return left - serverPrecision
	case t.RequestedAt.Before(at):
		return left
	}
	return min(max(t.RequestedAt.Sub(at), minPoll), MaxPoll)
}
