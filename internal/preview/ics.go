package preview

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const icsTime = "20060102T150405Z"

// ICS writes a calendar by RFC 5545, with an event for each interval. A state keeps only the intervals of that state, an empty one all.
func (r *Report) ICS(w io.Writer, in Range, state string) error {
	c := &calendar{stamp: in.From.UTC().Format(icsTime)}
	c.line("BEGIN:VCALENDAR")
	c.line("VERSION:2.0")
	c.line("PRODID:-//fluxcd//gating-controller//EN")
	c.line("CALSCALE:GREGORIAN")
	c.line("METHOD:PUBLISH")
	for _, t := range r.Gates {
		for i := range t.Intervals {
			if state == "" || t.Intervals[i].State == state {
				c.event(t.Gate, &t.Intervals[i], in)
			}
		}
	}
	c.line("END:VCALENDAR")
	_, err := io.WriteString(w, c.text.String())
	return err
}

// calendar is one that is being written.
type calendar struct {
	text  strings.Builder
	stamp string
}

func (c *calendar) event(gate string, i *Interval, in Range) {
	c.line("BEGIN:VEVENT")
	c.line("UID:" + uid(gate, i, in))
	c.line("DTSTAMP:" + c.stamp)
	c.line("DTSTART:" + i.From.UTC().Format(icsTime))
	c.line("DTEND:" + i.Until.UTC().Format(icsTime))
	c.line("SUMMARY:" + escapeText(fmt.Sprintf("%s: %s (%s)", shortName(gate), i.State, i.Words())))
	c.line("DESCRIPTION:" + escapeText(fmt.Sprintf("Gate %s is %s: %s", gate, i.State, i.Words())))
	c.line("CATEGORIES:" + escapeText(i.State))
	c.line("TRANSP:TRANSPARENT")
	c.line("END:VEVENT")
}

// uid names an interval by when it ends, because a calendar that is made later cuts off its begin. Where the range cuts off its end, it is
// named by its begin.
func uid(gate string, i *Interval, in Range) string {
	edge := "until-" + i.Until.UTC().Format(icsTime)
	switch cut := !i.Until.Time.Before(in.Until); {
	case cut && !i.From.After(in.From):
		edge = "always"
	case cut:
		edge = "from-" + i.From.UTC().Format(icsTime)
	}
	namespace, name, _ := strings.Cut(gate, "/")
	return fmt.Sprintf("%s-%s.%s.gate.%s", i.State, edge, name, namespace)
}

var textEscapes = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", "")

func escapeText(text string) string { return textEscapes.Replace(text) }

// maxLine is how many bytes a line of a calendar has at most, its break left out.
const maxLine = 75

// line writes a line, folded between characters.
func (c *calendar) line(text string) {
	room := maxLine
	for len(text) > room {
		cut := room
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		c.text.WriteString(text[:cut] + "\r\n ")
		text, room = text[cut:], maxLine-1
	}
	c.text.WriteString(text + "\r\n")
}
