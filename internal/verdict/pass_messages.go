package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/format"
)

// GrantedMessage returns a message about a granted pass, with its Gates, its requester, and its deadline.
func (p Pass) GrantedMessage(names []string) string {
	return fmt.Sprintf(msgGranted,
		strings.TrimSpace(gates(names, "", "")), p.Since.UTC().Format(time.RFC3339), p.requestedBy(), p.Until.UTC().Format(time.RFC3339))
}

// requestedBy returns the requester of a pass and the reason, as part of a sentence.
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

// EndedMessage returns a message about how a pass has ended, and which revisions the target had before and after it.
func (p Pass) EndedMessage() string {
	text := fmt.Sprintf(msgEnded, p.Since.UTC().Format(time.RFC3339), p.Ended.UTC().Format(time.RFC3339), p.Message)
	switch {
	case p.After == "":
	case p.After == p.Before:
		text += fmt.Sprintf(msgRevisionStill, p.After)
	case p.Before == "":
		text += fmt.Sprintf(msgRevisionIs, p.After)
	default:
		text += fmt.Sprintf(msgRevisionChanged, p.Before, p.After)
	}
	return text + "."
}

// RefusedMessage returns a message about a refused pass, with its requester and the reason.
func (p Pass) RefusedMessage(why string) string {
	return fmt.Sprintf(msgRefused, format.Printable(p.Value), p.requestedBy(), why)
}

// result returns a sentence about the last pass of a held target, empty if there is nothing to report.
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

// IsFailure returns whether a pass ended without success, unless it ended because the Gates opened.
func (p Pass) IsFailure() bool { return p.Outcome != PassSucceeded && p.Outcome != PassOpened }
