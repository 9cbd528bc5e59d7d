package term

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

// PluginName is how the help texts call the program.
const PluginName = "kubectl gate"

// Terminal prints for a command, and has the clock and the time zone of the user.
type Terminal struct {
	genericiooptions.IOStreams
	Clock clock.WithTicker
	// Program is how users call the program, such as kubectl gate.
	Program string
	// timeZone, zoneInfo and color are the values of the flags.
	TimeZone, ZoneInfo, Color string
}

func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// WithProgram returns a text of ours with the name by which the program is called.
func (t *Terminal) WithProgram(text string) string {
	return strings.ReplaceAll(text, PluginName, t.Program)
}

// Incomplete says what has gone wrong after something was done.
func (t *Terminal) Incomplete(err error) error {
	fmt.Fprintln(t.ErrOut, "error:", t.WithProgram(OneLine(err.Error())))
	return ExitCode(ExitIncomplete)
}

// OneLine returns a text without line breaks and without what a terminal would take for commands.
func OneLine(text string) string { return strings.Join(strings.Fields(format.Printable(text)), " ") }

// Now returns the time in the zone that the user wants.
func (t *Terminal) Now() (time.Time, error) {
	zone, err := t.zone()
	return t.Clock.Now().In(zone), err
}

// IsTerminal returns whether somebody reads what is written.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Line prints a line for people.
func (t *Terminal) Line(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// Warn prints a line on standard error.
func (t *Terminal) Warn(format string, args ...any) {
	fmt.Fprintf(t.ErrOut, "warning: "+format+"\n", args...)
}

// ErrLine prints a line to standard error.
func (t *Terminal) ErrLine(format string, args ...any) { fmt.Fprintf(t.ErrOut, format+"\n", args...) }
