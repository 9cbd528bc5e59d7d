package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/format"
)

// GrantedMessage says in sentences that one reconciliation passes some Gates, who asked for it,
// and until when.
func (p Pass) GrantedMessage(names []string) string {
	return fmt.Sprintf("One reconciliation passes %s since %s%s. The target is held again when that has ended, at %s at the latest.",
		strings.TrimSpace(gates(names, "", "")), p.Since.UTC().Format(time.RFC3339), p.requestedBy(), p.Until.UTC().Format(time.RFC3339))
}

// requestedBy says who asked for a pass, and why.
func (p Pass) requestedBy() string {
	text := ""
	if p.By != "" {
		text += ", requested by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// EndedMessage says in a sentence how a pass has ended, and what it has brought.
func (p Pass) EndedMessage() string {
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

// RefusedMessage says in a sentence why nothing passes.
func (p Pass) RefusedMessage(why string) string {
	return fmt.Sprintf("The pass requested at %.64s%s is refused: %s.", format.Printable(p.Value), p.requestedBy(), why)
}

// result describes the last pass of a held target.
func (p Pass) result() string {
	switch p.State {
	case PassEnded:
		return " " + p.EndedMessage()
	case PassRefused:
		return " " + p.RefusedMessage(p.Message)
	case PassInProgress:
	}
	return ""
}

// IsFailure returns whether a pass has ended in another way than it was meant to.
func (p Pass) IsFailure() bool { return p.Outcome != PassSucceeded && p.Outcome != PassOpened }
