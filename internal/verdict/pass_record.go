package verdict

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/format"
)

// recordField is a line key=value in the record of a pass. Exactly one of text and at is set.
type recordField struct {
	key  string
	text *string
	at   *time.Time
}

// fields returns the lines of a record in order. state and gates come first, because config/lock reads them. Free text comes last.
func (p *Pass) fields() []recordField {
	return []recordField{
		{key: "state", text: (*string)(&p.State)}, {key: "gates", text: &p.Gates},
		{key: "requestedAt", text: &p.Value}, {key: "requestedBy", text: &p.By},
		{key: "startedAt", at: &p.Since}, {key: "until", at: &p.Until}, {key: "endedAt", at: &p.Ended}, {key: "outcome", text: &p.Outcome},
		{key: "revisionBefore", text: &p.Before}, {key: "revisionAfter", text: &p.After},
		{key: "handledBefore", text: &p.Was[0]}, {key: "handled", text: &p.Is[0]},
		{key: "attemptedBefore", text: &p.Was[1]}, {key: "attempted", text: &p.Is[1]},
		{key: "generationBefore", text: &p.Was[2]}, {key: "generation", text: &p.Is[2]},
		{key: "reason", text: &p.Reason}, {key: "message", text: &p.Message},
	}
}

// Record returns the value of v1alpha1.PassAnnotation for the pass, with a line for each field that is set.
func (p Pass) Record() string {
	var lines []string
	for _, f := range p.fields() {
		switch {
		case f.at != nil && !f.at.IsZero():
			lines = append(lines, f.key+"="+f.at.UTC().Format(time.RFC3339Nano))
		case f.text != nil && *f.text != "":
			lines = append(lines, f.key+"="+inLine(*f.text))
		}
	}
	return strings.Join(lines, "\n")
}

// inLine returns text in a form that fits into a line of a record. It quotes text with special characters, a leading quote, or leading or
// trailing white space, because users control what Flux reports as handled.
func inLine(text string) string {
	if strings.TrimSpace(text) == text && format.Printable(text) == text && text[0] != '"' {
		return text
	}
	return strconv.Quote(text)
}

// ParseRecord parses the record of a pass. It returns false if a key is unknown, repeated or out of order, or if a value is empty or
// malformed.
func ParseRecord(text string) (p Pass, ok bool) {
	rest := p.fields()
	for line := range strings.SplitSeq(text, "\n") {
		key, value, found := strings.Cut(line, "=")
		i := slices.IndexFunc(rest, func(f recordField) bool { return f.key == key })
		if !found || i < 0 || value == "" {
			return Pass{}, false
		}
		f, err := rest[i], error(nil)
		rest = rest[i+1:]
		switch {
		case f.at != nil:
			*f.at, err = time.Parse(time.RFC3339Nano, value)
		case value[0] == '"':
			*f.text, err = strconv.Unquote(value)
		default:
			*f.text = value
		}
		if err != nil {
			return Pass{}, false
		}
	}
	return p, true
}
