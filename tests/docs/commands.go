package docs

import (
	"regexp"
	"strings"
)

// Command is a command of a console block, with its output on the page.
type Command struct{ Text, Prints string }

// Commands returns the commands of a console block.
func Commands(text string) (commands []Command) {
	for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, prints, _ := strings.Cut(part, "\n")
		commands = append(commands, Command{command, prints})
	}
	return commands
}

var changes = regexp.MustCompile(`kubectl( -n \S+)? (apply|annotate|patch|create|delete|label|scale|wait)|kubectl gate (open|close|freeze|thaw|reset|pass|approve|proceed)|curl`)

// Changes returns whether a command may run only once.
func (c Command) Changes() bool { return changes.MatchString(c.Text) }

var (
	instants  = regexp.MustCompile(`\b[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+( ?[A-Z]{1,4}\b)?)?`)
	distances = regexp.MustCompile(`\b([0-9]+[smhd])+( ago)?\b`)
	versions  = regexp.MustCompile(`\(devel\)|\bv[0-9]+\.[0-9]+\.[0-9]+[-+.0-9a-z]*|\b20[0-9]{2}[a-z]\b`)
	commits   = regexp.MustCompile(`\bsha1:[0-9a-f]{8,}\b`)
	ids       = regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\b`)
	columns   = regexp.MustCompile(` {2,}|-{3,}`)
	ends      = regexp.MustCompile(`(?m) +$`)
	repeats   = regexp.MustCompile(` \(x[0-9]+ over [^)]*\)`)
)

// Stable returns a text without the parts that differ each time: times, versions, commits, identifiers, and the width of columns, which
// depends on them.
func Stable(text string) string {
	text = versions.ReplaceAllString(ids.ReplaceAllString(text, "<id>"), "<version>")
	text = instants.ReplaceAllString(commits.ReplaceAllString(text, "<commit>"), "<time>")
	text = columns.ReplaceAllString(distances.ReplaceAllString(text, "<distance>"), "  ")
	return strings.TrimSpace(repeats.ReplaceAllString(ends.ReplaceAllString(text, ""), ""))
}
