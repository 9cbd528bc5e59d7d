package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/format"
)

// Granted says in sentences that one reconciliation passes some Gates, who asked for it,
// and until when.
func (p Pass) Granted(names []string) string {
	return fmt.Sprintf("One reconciliation passes %s since %s%s. The target is held again when that has ended, at %s at the latest.",
		strings.TrimSpace(gates(names, "", "")), p.Since.UTC().Format(time.RFC3339), p.asked(), p.Until.UTC().Format(time.RFC3339))
}

// asked says who asked for a pass, and why.
func (p Pass) asked() string {
	text := ""
	if p.By != "" {
		text += ", requested by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// EndedSaying says in a sentence how a pass has ended, and what it has brought.
func (p Pass) EndedSaying() string {
	text := fmt.Sprintf("The pass of %s ended at %s, %s", p.Since.UTC().Format(time.RFC3339), p.Ended.UTC().Format(time.RFC3339), p.Message)
	switch {
	case p.After == "":
	case p.After == p.Before:
		text += fmt.Sprintf(". The revision is still %s", p.After)
	case p.Before == "":
		text += fmt.Sprintf(". The revision is %s", p.After)
	default:
		text += fmt.Sprintf(". The revision was %s and is %s", p.Before, p.After)
	}
	return text + "."
}

// RefusedSaying says in a sentence why nothing passes.
func (p Pass) RefusedSaying(why string) string {
	return fmt.Sprintf("The pass requested at %.64s%s is refused: %s.", format.Printable(p.Value), p.asked(), why)
}

// result describes the last pass of a held target.
func (p Pass) result() string {
	switch p.State {
	case PassEnded:
		return " " + p.EndedSaying()
	case PassRefused:
		return " " + p.RefusedSaying(p.Message)
	case PassGoesOn:
	}
	return ""
}

// IsFailure returns whether a pass has ended in another way than it was meant to.
func (p Pass) IsFailure() bool { return p.Outcome != PassSucceeded && p.Outcome != PassOpened }
