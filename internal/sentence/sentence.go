// Package sentence formats the parts of messages: names, counts and times.
package sentence

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Printable returns a text with blanks for all that a terminal, or the log of a pipeline,
// would take for a line break or a command.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// OneLine returns a text without line breaks and other control characters, so that it
// cannot pass for another line. It is cut to a length in bytes.
func OneLine(text string, length int) string {
	text = strings.TrimSpace(Printable(text))
	if len(text) <= length {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:length-len(more)], "") + more
}

// Count returns a number with a noun, which gets an s unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Time returns a time in UTC, in the form of RFC 3339 without fractions of a second.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }
