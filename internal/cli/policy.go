package cli

import (
	"regexp"
	"strings"
)

// isPolicy returns whether an admission policy has refused, which says why.
func isPolicy(err error) bool { return err != nil && strings.Contains(err.Error(), "denied request:") }

// denied finds what an admission policy says.
var denied = regexp.MustCompile(`(?s)^.*denied request: (user \S+)?`)

// refusalOf returns what an admission policy says to a person.
func refusalOf(err error) string {
	text := err.Error()
	if found := denied.FindStringSubmatchIndex(text); found != nil && found[2] >= 0 {
		return "you" + text[found[1]:]
	}
	return strings.TrimSpace(denied.ReplaceAllString(text, ""))
}
