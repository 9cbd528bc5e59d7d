package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/format"
)

// pluginName is how the help texts call the program.
const pluginName = "kubectl gate"

// terminal prints for a command, and has the clock and the time zone of the user.
type terminal struct {
	genericiooptions.IOStreams
	clock clock.WithTicker
	// name is how users call the program, such as kubectl gate.
	name string
	// timeZone, zoneInfo and color are the values of the flags.
	timeZone, zoneInfo, color string
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// called returns a text of ours with the name by which the program is called.
func (t *terminal) called(text string) string { return strings.ReplaceAll(text, pluginName, t.name) }

// incomplete says what has gone wrong after something was done.
func (t *terminal) incomplete(err error) error {
	fmt.Fprintln(t.ErrOut, "error:", t.called(oneLine(err.Error())))
	return exitCode(exitIncomplete)
}

// oneLine returns a text without line breaks and without what a terminal would take for commands.
func oneLine(text string) string { return strings.Join(strings.Fields(format.Printable(text)), " ") }

// now returns the time in the zone that the user wants.
func (t *terminal) now() (time.Time, error) {
	zone, err := t.zone()
	return t.clock.Now().In(zone), err
}

// isTerminal returns whether somebody reads what is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// say prints a line for people.
func (t *terminal) say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// warn prints a line on standard error.
func (t *terminal) warn(format string, args ...any) {
	fmt.Fprintf(t.ErrOut, "warning: "+format+"\n", args...)
}

// errLine prints a line to standard error.
func (t *terminal) errLine(format string, args ...any) { fmt.Fprintf(t.ErrOut, format+"\n", args...) }
