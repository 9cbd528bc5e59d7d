package main

import (
	"regexp"
	"strings"
)

type kind int

const (
	paragraph kind = iota
	heading
	cell
	comment
	message
)

// A passage is a text in one piece: a paragraph, an item of a list, a cell of a table, a heading, a comment or a message.
type passage struct {
	kind kind
	line int
	text string
}

// reader makes passages of lines.
type reader struct {
	passages []passage
	// goesOn says that the next line may belong to the last passage.
	goesOn bool
}

var (
	item     = regexp.MustCompile(`^(?:[-*+]|\d+\.) `)
	dividing = regexp.MustCompile(`^[-:| ]*$`)
)

// add takes a line. One that is empty ends a passage. Each item of a list is a passage of its own, and so is each cell of a table.
func (r *reader) add(kind kind, line int, text string) {
	text = strings.TrimSpace(text)
	switch marker := item.FindString(text); {
	case text == "":
		r.goesOn = false
		return
	case strings.HasPrefix(text, "|"):
		for part := range strings.SplitSeq(strings.ReplaceAll(text, `\|`, "/"), "|") {
			if !dividing.MatchString(part) {
				r.passages = append(r.passages, passage{cell, line, strings.TrimSpace(part)})
			}
		}
		r.goesOn = false
		return
	case marker != "":
		text = strings.TrimSpace(strings.TrimPrefix(text, marker))
	case r.goesOn:
		last := &r.passages[len(r.passages)-1]
		last.text += " " + text
		return
	}
	r.passages = append(r.passages, passage{kind, line, text})
	r.goesOn = true
}

// alone takes a line that has neither one before nor one after it.
func (r *reader) alone(kind kind, line int, text string) {
	r.goesOn = false
	r.add(kind, line, text)
	r.goesOn = false
}

var (
	fence = regexp.MustCompile("^(```+|~~~+)")
	title = regexp.MustCompile(`^#+ `)
)

// markdown reads a page: all but its blocks of code, its front matter and what only its source shows.
func markdown(_ string, content []byte) ([]passage, error) {
	var r reader
	until := "" // the line that ends what nobody reads
	for i, line := range strings.Split(string(content), "\n") {
		text := strings.TrimLeft(line, " >")
		switch opens := fence.FindString(text); {
		case until != "":
			if strings.HasPrefix(text, until) || until == "-->" && strings.Contains(text, until) {
				until = ""
			}
		case opens != "":
			until, r.goesOn = opens, false
		case i == 0 && text == "---":
			until = "---"
		case strings.HasPrefix(text, "<!--"):
			r.goesOn = false
			if !strings.Contains(text, "-->") {
				until = "-->"
			}
		case title.MatchString(text):
			r.alone(heading, i+1, strings.TrimLeft(text, "# "))
		default:
			r.add(paragraph, i+1, text)
		}
	}
	return r.passages, nil
}

var (
	key = regexp.MustCompile(`^( *(?:- )?)(?:message|summary|description): *(.*)$`)
	// help is what "make help" prints of a target.
	help = regexp.MustCompile(`^[a-z-]+:.*## (.*)`)
)

// hashes reads a manifest, a script or a Makefile: its comments, and the values of keys that people read.
func hashes(_ string, content []byte) ([]passage, error) {
	var r reader
	indent := -1 // how far the key is to the right whose value goes on
	for i, line := range strings.Split(string(content), "\n") {
		text := strings.TrimSpace(line)
		if indent >= 0 && text != "" && len(line)-len(strings.TrimLeft(line, " ")) > indent {
			r.add(message, i+1, strings.TrimRight(text, `"'`))
			continue
		}
		indent = -1
		if is, found := key.FindStringSubmatch(line), help.FindStringSubmatch(line); is != nil {
			r.goesOn = false
			r.add(message, i+1, strings.Trim(strings.TrimLeft(is[2], ">|-"), `"' `))
			indent = len(is[1])
		} else if found != nil {
			r.alone(message, i+1, found[1])
		} else if after, ok := strings.CutPrefix(text, "#"); ok && !strings.HasPrefix(after, "!") && !strings.HasPrefix(after, "  ") {
			r.add(comment, i+1, after)
		} else {
			r.goesOn = false
		}
	}
	return r.passages, nil
}
