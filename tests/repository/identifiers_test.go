package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired are words that identifiers of the product must not use. docs/contribute/glossary.md has the terms to use instead.
var retired = []string{
	"accident", "accidents", "anew", "answer", "answered", "answers", "anybody", "ask", "asked", "asker", "asks", "besides", "book", "books",
	"contradiction", "contradictions", "course", "doubt", "doubts", "emptiness", "fate", "foreign", "foretell", "foreteller", "foretold", "forgotten",
	"hands", "heal", "heard", "hears", "herald", "heralds", "house", "keeper", "keepers", "looked", "looks", "mend", "news", "nobody", "noted", "origin",
	"origins", "prospect", "prospects", "remember", "remembered", "remembering", "remembers", "said", "say", "saying", "says", "sight", "sighting",
	"sightings", "somebody", "stand", "standing", "stir", "stretch", "stretches", "tallied", "tallies", "tally", "tell", "tells", "told", "twin",
	"untold", "urge", "urged", "urgency", "urges", "wake", "waker", "wakes", "watcher", "whatever", "whoever", "witness", "woken",
}

// camelWords matches the words of an identifier.
var camelWords = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// declared calls found for each identifier of a file that is visible in other files: those at package level, methods and fields.
func declared(file *ast.File, found func(*ast.Ident)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			found(d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						found(name)
					}
				case *ast.TypeSpec:
					found(spec.Name)
					ast.Inspect(spec.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							for _, name := range field.Names {
								found(name)
							}
						}
						return true
					})
				}
			}
		}
	}
}

func isRetired(name string) bool {
	return slices.ContainsFunc(camelWords.FindAllString(name, -1), func(word string) bool {
		return slices.Contains(retired, strings.ToLower(word))
	})
}

func TestIdentifiersUseNoRetiredWords(t *testing.T) {
	set := token.NewFileSet()
	for _, folder := range []string{"api", "cmd", "config", "controllers", "internal", "receivers"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			declared(file, func(name *ast.Ident) {
				if isRetired(name.Name) {
					t.Errorf("%s: rename %s, see docs/contribute/glossary.md", set.Position(name.Pos()), name.Name)
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRetiredWordsAreFoundInCamelCase(t *testing.T) {
	for name, want := range map[string]bool{"isForeign": true, "ForeignKind": true, "twinOfURL": true, "twin": true, "twinkle": false, "Server": false, "": false} {
		if got := isRetired(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
