package cli

import (
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// terminal prints for a command, and has the clock and the time zone of the user.
type terminal struct {
	genericiooptions.IOStreams
	clock clock.WithTicker
	// name is how users call the program, such as kubectl gate.
	name string
	// timeZone, zoneInfo and color are the values of the flags.
	timeZone, zoneInfo, color string
}
