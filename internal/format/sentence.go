// Package format formats the parts of messages: names, counts and times.
package format

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Printable replaces characters that a terminal or a log could interpret as a line break or a command with blanks.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// OneLine returns a text as one line without control characters, truncated to a length in bytes.
func OneLine(text string, length int) string {
	text = strings.TrimSpace(Printable(text))
	if len(text) <= length {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:length-len(more)], "") + more
}

// Count returns a number followed by a noun, and adds an s to the noun unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Time returns a time in UTC, formatted as in RFC 3339 without fractions of a second.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }
