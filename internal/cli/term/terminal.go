// Package term prints tables, Lists, colors and times, and parses times written by users. It contains no client.
package term

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/format"
)

// PluginName is the name of the program in help texts.
const PluginName = "kubectl gate"

// Terminal prints the output of a command, and contains the clock and the time zone of the user.
type Terminal struct {
	genericiooptions.IOStreams
	Clock clock.WithTicker
	// Program is the name that users call the program by, such as kubectl gate.
	Program string
	// TimeZone, ZoneInfo and Color are the values of the flags.
	TimeZone, ZoneInfo, Color string
}

// OrDash returns a dash for an empty text.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// WithProgram replaces the name of the program in a text with the name that the user has called it by.
func (t *Terminal) WithProgram(text string) string {
	return strings.ReplaceAll(text, PluginName, t.Program)
}

// Incomplete prints an error and returns ExitIncomplete.
func (t *Terminal) Incomplete(err error) error {
	fmt.Fprintln(t.ErrOut, "error:", t.WithProgram(OneLine(err.Error())))
	return ExitCode(ExitIncomplete)
}

// OneLine returns a text without line breaks and control characters.
func OneLine(text string) string { return strings.Join(strings.Fields(format.Printable(text)), " ") }

// Now returns the time in the time zone of the user.
func (t *Terminal) Now() (time.Time, error) {
	zone, err := t.zone()
	return t.Clock.Now().In(zone), err
}

// Sleep waits for a duration. It returns an error if the context ends first.
func (t *Terminal) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.Clock.After(d):
		return nil
	}
}

// IsTerminal returns whether a writer is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Line prints a line on standard output.
func (t *Terminal) Line(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// Warn prints a warning on standard error.
func (t *Terminal) Warn(format string, args ...any) {
	fmt.Fprintf(t.ErrOut, "warning: "+format+"\n", args...)
}

// ErrLine prints a line on standard error.
func (t *Terminal) ErrLine(format string, args ...any) { fmt.Fprintf(t.ErrOut, format+"\n", args...) }
