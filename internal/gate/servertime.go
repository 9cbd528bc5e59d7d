package gate

import (
	"errors"
	"fmt"
	"time"
)

const (
	// serverPrecision is the precision of the time that the API server returns. It is cut off, never rounded up.
	serverPrecision = time.Second

	// MaxPoll and minPoll bound the interval of requests for a time that the API server reaches within the same second.
	MaxPoll = 100 * time.Millisecond
	minPoll = 5 * time.Millisecond

	// reportedSkew is the smallest difference of the clocks that is reported.
	reportedSkew = 500 * time.Millisecond

	// ClocksDiffer ends the message of a Gate if a difference of the clocks delays its opening, or makes it close early.
	ClocksDiffer = "the clocks of the controller and of the API server differ"
	clocksDiffer = ", " + ClocksDiffer
)

// ErrTimeUnknown is the error of a Gate that may not open because the API server does not return its time.
var ErrTimeUnknown = errors.New("the API server does not say what time it is")

// ServerTime is the time that the API server returned.
type ServerTime struct {
	// RequestedAt and Answered are the times of the request and of the response by the controller's clock.
	RequestedAt, ReceivedAt time.Time
	// Reported is the time in the response, cut off to the second.
	Reported time.Time
	// Err is the error of the request, nil if it succeeded.
	Err error
}

// Unknown returns ErrTimeUnknown with its cause, nil if the time is known.
func (t *ServerTime) Unknown() error {
	if t.Err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrTimeUnknown, t.Err)
}

// Ahead returns by how much the controller's clock is at least ahead of that of the API server. It is negative if it is behind.
func (t *ServerTime) Ahead() time.Duration {
	if ahead := t.RequestedAt.Sub(t.Reported) - serverPrecision; ahead > 0 {
		return ahead
	}
	return min(t.ReceivedAt.Sub(t.Reported), 0)
}

// reached returns the latest time that the API server's clock may have had when it returned its time, and at most now if that is possible.
// A request of the same second is therefore not taken for a later one, and the next opening begins at a full second.
func (t *ServerTime) reached(now time.Time) time.Time {
	switch last := t.Reported.Add(serverPrecision - 1); {
	case now.Before(t.Reported):
		return t.Reported
	case now.After(last):
		return last
	}
	return now
}

// Until returns how long to wait until the API server's clock may reach an instant that it had not reached. The fraction of its current
// second is unknown, but the instant is not farther away than the controller's clock is ahead. Therefore, the first wait is short, and each
// wait is as long as all waits before it together.
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
