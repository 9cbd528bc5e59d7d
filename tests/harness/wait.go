package harness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// permanentError ends Eventually before its timeout.
type permanentError struct{ error }

// Permanent returns an error that a retry cannot resolve.
func Permanent(err error) error { return permanentError{err} }

// Eventually calls check until it returns nil, at most for timeout. The returned error wraps the last error of check.
func Eventually(ctx context.Context, timeout time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		if errors.As(err, &permanentError{}) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in %s: %s: %w", timeout, what, err)
		case <-time.After(pollInterval):
		}
	}
}

// Throughout calls check repeatedly during an interval, and returns its first error.
func Throughout(ctx context.Context, duration time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	for {
		if err := check(); err != nil {
			return fmt.Errorf("not throughout %s: %s: %w", duration, what, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
	}
}
