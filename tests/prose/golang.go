package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

var (
	// said is what a marker says if a value is refused.
	said = regexp.MustCompile(`^\+kubebuilder:.*message="([^"]*)"`)
	// sentence is what a text has that people read, and a name, a pattern or an expression has not.
	sentence = regexp.MustCompile(`[A-Za-z]+,? [a-z]+,? [a-z]+`)
)

// golang reads the comments of a file, and its messages unless it is one of the tests.
func golang(path string, content []byte) ([]passage, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var r reader
	for _, group := range file.Comments {
		r.goesOn = false
		for _, line := range group.List {
			r.comment(set.Position(line.Pos()).Line, line.Text)
		}
	}
	if isTest := strings.HasSuffix(path, "_test.go") || strings.Contains("/"+path, "/tests/"); isTest {
		return r.passages, nil
	}
	messages := messages{set: set, reader: &r}
	ast.Inspect(file, messages.visit)
	return r.passages, nil
}

// comment takes one line of a comment, or a block.
func (r *reader) comment(line int, text string) {
	for i, text := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/"), "\n") {
		spaced, isLine := strings.CutPrefix(text, "//")
		text = strings.TrimPrefix(spaced, " ")
		isExample := strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "   ")
		isDirective := isLine && spaced == text && text != ""
		switch marker := said.FindStringSubmatch(text); {
		case marker != nil:
			r.alone(message, line+i, marker[1])
		case isExample, isDirective, strings.HasPrefix(text, "+"):
			r.goesOn = false
		default:
			r.add(comment, line+i, text)
		}
	}
}

// messages finds the texts of a file that are sentences.
type messages struct {
	set *token.FileSet
	*reader
}

func (m messages) visit(node ast.Node) bool {
	expression, ok := node.(ast.Expr)
	if !ok {
		return true
	}
	text, ok := m.text(expression)
	if !ok {
		return true
	}
	m.goesOn = false
	for i, line := range strings.Split(text, "\n") {
		if !sentence.MatchString(text) || strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
			m.goesOn = false
			continue
		}
		m.add(message, m.set.Position(node.Pos()).Line+i, line)
	}
	return false
}

// text returns the text that an expression is, with `x` for each part that is known only when the program runs. It returns false if
// the expression is not a text.
func (m messages) text(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isLeft := m.text(e.X)
		right, isRight := m.text(e.Y)
		if e.Op != token.ADD || !isLeft && !isRight {
			return "", false
		}
		for _, part := range []struct {
			text   *string
			isText bool
			of     ast.Expr
		}{{&left, isLeft, e.X}, {&right, isRight, e.Y}} {
			if !part.isText {
				*part.text = "`x`"
				ast.Inspect(part.of, m.visit)
			}
		}
		return left + right, true
	}
	return "", false
}
