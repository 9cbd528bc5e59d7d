package annotations

import (
	"regexp"
	"strings"
)

// plainWord matches words that a shell takes as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-]+$`)

// ShellQuote returns a text as one word of a command for a POSIX shell, in quotes if it needs any. Git allows ; and $ in branch names.
func ShellQuote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
