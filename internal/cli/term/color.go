package term

import (
	"os"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// PaintState returns a state in its color.
func (t *Terminal) PaintState(state string) string {
	switch state {
	case string(v1alpha1.StateOpened):
		return t.Paint(Green, state)
	case string(v1alpha1.StateClosed):
		return t.Paint(Red, state)
	}
	return t.Paint(Yellow, state)
}

// PaintAdjective returns a state as an adjective, in color.
func (t *Terminal) PaintAdjective(state string) string {
	return Adjective(t.PaintState(state))
}

// Adjective returns a state as an adjective. For example, opened becomes open.
func Adjective(state string) string {
	return strings.Replace(state, string(v1alpha1.StateOpened), "open", 1)
}

// Colors by meaning, as SGR codes.
const (
	Green  = "32"
	Red    = "31"
	Yellow = "33"
	Bold   = "1"
	Faint  = "2"
)

// Paint returns a text in a color if colors are enabled.
func (t *Terminal) Paint(color, text string) string {
	if !t.colorful() || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (t *Terminal) colorful() bool {
	switch t.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(t.Out)
}
