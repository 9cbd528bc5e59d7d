package term

import (
	"fmt"
)

// Exit codes besides 0. They are documented in docs/reference/cli.md.
const (
	// ExitDiffers means that diff or check has found something.
	ExitDiffers = 1
	// ExitError means that nothing was done: the command was wrong, not allowed, or there is no cluster.
	ExitError = 2
	// ExitIncomplete means that something was done, but not all of it.
	ExitIncomplete = 3
	// ExitTimeout means that what --wait waits for has not happened in time. It is that of timeout(1).
	ExitTimeout = 124
)

// ExitCode is an error that only sets the exit code: what it means was said.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
