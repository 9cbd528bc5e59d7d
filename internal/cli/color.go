package cli

import (
	"os"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// paintState colors a state at the beginning of a text.
func (t *terminal) paintState(state string) string {
	switch state {
	case string(v1alpha1.StateOpened):
		return t.paint(green, state)
	case string(v1alpha1.StateClosed):
		return t.paint(red, state)
	}
	return t.paint(yellow, state)
}

// paintOpen colors a state as a sentence has it: a Gate is open.
func (t *terminal) paintOpen(state string) string {
	return isState(t.paintState(state))
}

// isState returns a state as a sentence has it: a Gate is open.
func isState(state string) string {
	return strings.Replace(state, string(v1alpha1.StateOpened), "open", 1)
}

// Colors by what they mean.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	bold   = "1"
	faint  = "2"
)

// paint returns a text in a color, if colors are wanted.
func (t *terminal) paint(color, text string) string {
	if !t.colorful() || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (t *terminal) colorful() bool {
	switch t.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(t.Out)
}
