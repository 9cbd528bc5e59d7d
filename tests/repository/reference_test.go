package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api"
)

// constant is a string constant of api/v1alpha1.
type constant struct {
	value string
	// doc is the comment of the constant and of its group.
	doc string
}

// constants returns the constants of api/v1alpha1 whose names have one of these endings, by name.
func constants(t *testing.T, endings ...string) map[string]constant {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "api", "v1alpha1", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found, known := map[string]constant{}, prefixes(t)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec) //nolint:forcetypeassert // a const has no other type
				for i, name := range value.Names {
					if literal, ok := valueAt(known, value, i); ok && slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(name.Name, end) }) {
						found[name.Name] = constant{literal, group.Doc.Text() + value.Doc.Text()}
					}
				}
			}
		}
	}
	if len(found) < 3 {
		t.Fatalf("only %d constants", len(found))
	}
	return found
}

// prefixes returns the possible prefixes of string constants of api/v1alpha1: the names in api/names.go and the prefixes of annotations.
func prefixes(t *testing.T) map[string]string {
	t.Helper()
	known := map[string]string{"api.Group": api.Group, "api.RequestDomain": api.RequestDomain}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "api", "v1alpha1", "annotations.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && strings.HasSuffix(spec.Names[0].Name, "Prefix") {
			known[spec.Names[0].Name], _ = valueAt(known, spec, 0)
		}
		return true
	})
	return known
}

// valueAt returns the value of the constant at index i of spec: a literal, a known name, or a concatenation of them.
func valueAt(known map[string]string, spec *ast.ValueSpec, i int) (string, bool) {
	if i >= len(spec.Values) {
		return "", false
	}
	return text(known, spec.Values[i])
}

func text(known map[string]string, expr ast.Expr) (string, bool) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, first := text(known, e.X)
		right, second := text(known, e.Y)
		return left + right, first && second
	default:
		value, ok := known[types.ExprString(expr)]
		return value, ok
	}
}

// column returns the values in backticks in the columns of a page with one of these headings.
func column(t *testing.T, page string, headings ...string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "reference", page))
	if err != nil {
		t.Fatal(err)
	}
	found, columns := map[string]bool{}, []int{}
	inTable := false
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "|") {
			inTable = false
			continue
		}
		cells := strings.Split(line, "|")
		if !inTable {
			inTable, columns = true, nil
			for i, cell := range cells {
				if slices.Contains(headings, strings.TrimSpace(cell)) {
					columns = append(columns, i)
				}
			}
			continue
		}
		for _, i := range columns {
			for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[i], -1) {
				found[word[1]] = true
			}
		}
	}
	return found
}

// same compares two sets and reports the values that are only in one of them.
func same(t *testing.T, what string, page, code map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !page[name] {
			t.Errorf("the page lacks the %s %s", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(page)) {
		if !code[name] {
			t.Errorf("the code has no %s %s", what, name)
		}
	}
}

func values(found map[string]constant) map[string]bool {
	all := map[string]bool{}
	for _, c := range found {
		all[c.value] = true
	}
	return all
}

// code returns the content of all files of the product in some folders, without tests.
func code(t *testing.T, ending string, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ending) || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			all.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// key matches an annotation, a label or a finalizer of the project. In a JSON pointer, the slash is written as ~1.
var key = regexp.MustCompile(`\b((?:open|close|proceed|approve|pass|rollback)\.gate\.fluxcd\.io|gating\.toolkit\.fluxcd\.io)(?:/|~1)([a-z][A-Za-z-]+)\b`)

func TestAnnotationsPageIsComplete(t *testing.T) {
	ours := map[string]bool{}
	for value := range values(constants(t, "Annotation", "Label", "Finalizer")) {
		if strings.Contains(value, "/") {
			ours[value] = true
		}
	}
	for _, found := range key.FindAllStringSubmatch(code(t, ".yaml", "config"), -1) {
		ours[found[1]+"/"+found[2]] = true
	}
	page := column(t, "annotations.md", "key")
	maps.DeleteFunc(page, func(name string, _ bool) bool { return !key.MatchString(name) })
	same(t, "annotation", page, ours)
}

// ofFlux returns the conditions or reasons of github.com/fluxcd/pkg/apis/meta that the product uses. They are named after their values.
func ofFlux(t *testing.T, ending string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, found := range regexp.MustCompile(`\b(?:flux)?meta\.([A-Z][A-Za-z]+)`+ending+`\b`).FindAllStringSubmatch(code(t, ".go", "controllers", "internal"), -1) {
		if !strings.HasSuffix(found[1], "Status") { // unless it is a function of Kubernetes, such as FindStatusCondition
			all[found[1]] = true
		}
	}
	return all
}

func TestConditionsPageIsComplete(t *testing.T) {
	types, reasons := values(constants(t, "Condition")), values(constants(t, "Reason"))
	maps.Copy(types, ofFlux(t, "Condition"))
	maps.Copy(reasons, ofFlux(t, "Reason"))
	delete(reasons, "HealthCheckCanceled") // set by kustomize-controller
	const page = "conditions-and-events.md"
	same(t, "condition", column(t, page, "condition"), types)
	reasons["HoldsItsOwnSource"] = true // also the name of the condition
	shown, events := column(t, page, "reason"), column(t, page, "event")
	for name := range events {
		if reasons[name] {
			shown[name] = true
		}
	}
	same(t, "reason", shown, reasons)
}

func TestEventsPageIsComplete(t *testing.T) {
	types, reasons := constants(t, "Condition"), constants(t, "Reason")
	events := column(t, "conditions-and-events.md", "event")
	emitted := map[string]bool{}
	for name, reason := range reasons {
		if regexp.MustCompile(`(?s)^Reasons of (other )?events|reason of (the|an) event\b`).MatchString(reason.doc) {
			emitted[name] = true
		}
	}
	for _, found := range regexp.MustCompile(`(?:eventNormal|eventWarning|EventTypeWarning), v1alpha1\.([A-Za-z]+Reason)\b`).FindAllStringSubmatch(code(t, ".go", "controllers", "receivers"), -1) {
		emitted[found[1]] = true
	}
	if len(emitted) < 30 {
		t.Errorf("only %d events: %v", len(emitted), emitted)
	}
	for name := range emitted {
		if !events[reasons[name].value] {
			t.Errorf("the page lacks the event %s", reasons[name].value)
		}
	}
	known := ofFlux(t, "Condition") // an event can have the reason of a condition
	maps.Copy(known, values(reasons))
	maps.Copy(known, values(types))
	for name := range events {
		if !known[name] {
			t.Errorf("the code has no event %s", name)
		}
	}
}
