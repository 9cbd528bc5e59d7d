package cli

import (
	"fmt"
)

// Exit codes besides 0. They are documented in docs/reference/cli.md.
const (
	// exitDiffers means that diff or check has found something.
	exitDiffers = 1
	// exitError means that nothing was done: the command was wrong, not allowed, or there is no cluster.
	exitError = 2
	// exitIncomplete means that something was done, but not all of it.
	exitIncomplete = 3
	// exitTimeout means that what --wait waits for has not happened in time. It is that of timeout(1).
	exitTimeout = 124
)

// exitCode is an error that only sets the exit code: what it means was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
