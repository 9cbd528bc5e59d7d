package ical

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// line is an unfolded content line. number is the number of its first line in the text.
type line struct {
	number int
	text   string
}

const bom = "\uFEFF"

// unfold splits a text into content lines. It skips empty lines, and lines that are not valid text, which it reports in wrong.
func unfold(text string) (lines []line, wrong Errors) {
	// parts collects the parts of the current line. They are joined only at its end, which is fast even with many folds.
	var parts []string
	end := func() {
		if len(parts) > 1 {
			lines[len(lines)-1].text = strings.Join(parts, "")
		}
	}
	number := 0
	for physical := range strings.SplitSeq(text, "\n") {
		number++
		physical = strings.TrimRight(physical, "\r")
		switch {
		case physical == "":
		case physical[0] != ' ' && physical[0] != '\t':
			end()
			lines, parts = append(lines, line{number, physical}), append(parts[:0], physical)
		case len(lines) > 0:
			parts = append(parts, physical[1:])
		case strings.TrimSpace(physical) != "":
			wrong.add(&Error{number, "TEXT", "starts with white space, but no line precedes it that it could continue"})
		}
	}
	end()
	lines = slices.DeleteFunc(lines, func(l line) bool {
		// This is checked only now, because a fold may be inside a character.
		if !utf8.ValidString(l.text) {
			wrong.add(&Error{l.number, "TEXT", "is not UTF-8"})
			return true
		}
		if strings.ContainsRune(l.text, 0) {
			wrong.add(&Error{l.number, "TEXT", "has a NUL byte"})
			return true
		}
		return false
	})
	return lines, wrong
}

// property is a parsed content line. Its parameters are parsed only when they are needed.
type property struct {
	line   int
	name   string
	params string
	value  string

	// kind and tzid are the parameters VALUE and TZID. They are valid if typed is set, see types.
	kind, tzid string
	typed      bool
}

// types returns the parameters VALUE, in upper case, and TZID. Each is empty if it is missing.
func (p *property) types() (kind, tzid string, err error) {
	if p.typed {
		return p.kind, p.tzid, nil
	}
	if kind, err = p.param("VALUE"); err != nil {
		return "", "", err
	}
	if tzid, err = p.param("TZID"); err != nil {
		return "", "", err
	}
	p.kind, p.tzid, p.typed = strings.ToUpper(kind), tzid, true
	return p.kind, p.tzid, nil
}

// errorf returns an error about the property. The formatted cause continues a sentence that begins with the name of the property.
func (p *property) errorf(format string, args ...any) error {
	return &Error{p.line, p.name, fmt.Sprintf(format, args...)}
}

// parseProperty splits a content line at the colon before the value. Colons in quoted parameters do not count.
func parseProperty(l line) (property, error) {
	length := strings.IndexFunc(l.text, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if length < 1 || l.text[length] != ':' && l.text[length] != ';' {
		return property{}, &Error{l.number, "TEXT", fmt.Sprintf("%s is not a property: a name and a colon are missing", quote(l.text))}
	}
	p := property{line: l.number, name: strings.ToUpper(l.text[:length])}
	quoted := false
	for i := length; i < len(l.text); i++ {
		switch {
		case l.text[i] == '"':
			quoted = !quoted
		case l.text[i] == ':' && !quoted:
			p.params, p.value = l.text[length:i], l.text[i+1:]
			return p, nil
		}
	}
	return property{}, p.errorf("has no value: there is no colon outside of quotes")
}

// param returns the value of a parameter without quotes, empty if it is missing.
func (p *property) param(name string) (string, error) {
	found, seen := "", false
	for rest := p.params; rest != ""; {
		var param string
		param, rest = cutParam(rest[1:])
		key, value, ok := strings.Cut(param, "=")
		switch {
		case !ok:
			return "", p.errorf("has the parameter %s without a value", quote(param))
		case !strings.EqualFold(key, name):
			continue
		case seen:
			return "", p.errorf("has the parameter %s twice", name)
		}
		seen = true
		if found = value; len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
			found = value[1 : len(value)-1]
		}
		if found == "" || strings.Contains(found, `"`) {
			return "", p.errorf("has the parameter %s=%s, which is not a value", name, quote(value))
		}
	}
	return found, nil
}

// cutParam cuts a text at the first semicolon outside of quotes. rest begins with it.
func cutParam(s string) (param, rest string) {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ';' && !quoted:
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// texts returns the values in a list of TEXT, unescaped.
func (p *property) texts() []string {
	var all []string
	var text strings.Builder
	for i := 0; i < len(p.value); i++ {
		switch c := p.value[i]; {
		case c == ',':
			all = append(all, text.String())
			text.Reset()
		case c != '\\' || i+1 == len(p.value):
			text.WriteByte(c)
		default:
			i++
			switch c := p.value[i]; c {
			case 'n', 'N':
				text.WriteByte('\n')
			case '\\', ';', ',':
				text.WriteByte(c)
			default:
				text.WriteString(p.value[i-1 : i+1])
			}
		}
	}
	return append(all, text.String())
}

// text returns the value of a single TEXT, unescaped. A comma need not be escaped in it.
func (p *property) text() string { return strings.Join(p.texts(), ",") }

// quote returns a text in quotes for an error. It cuts the text to 60 bytes.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
