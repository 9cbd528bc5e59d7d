package term

import (
	"fmt"
)

// Exit codes other than 0. docs/reference/cli.md documents them.
const (
	// ExitDiffers means that diff found a difference, or that check found an error.
	ExitDiffers = 1
	// ExitError means that nothing was done, because the command is invalid or not permitted, or there is no cluster.
	ExitError = 2
	// ExitIncomplete means that the command did only part of its work, or that a request or an exception has no effect.
	ExitIncomplete = 3
	// ExitTimeout means that --wait timed out. It is the exit code of timeout(1).
	ExitTimeout = 124
)

// ExitCode is an error that carries an exit code. Its message has already been printed.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
