package annotations

import (
	"regexp"
	"strings"
)

// plainWord matches words that a shell does not change.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-]+$`)

// ShellQuote returns a text as one word for a POSIX shell, in quotes if necessary. Git allows ; and $ in branch names.
func ShellQuote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
