package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ofFluxAPI matches a literal that names an API group of Flux, and nothing that users read. Groups of this project are not matched.
var ofFluxAPI = regexp.MustCompile(`^(?:(?:source|kustomize|helm|image|notification|event)?\.toolkit|reconcile)\.fluxcd\.io\S*$`)

func TestFluxAPINamesComeFromItsModules(t *testing.T) {
	checked := 0
	for _, folder := range []string{"internal", "controllers", "receivers", "cmd", "main.go"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "controllertest/") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				checked++
				if value, err := strconv.Unquote(literal.Value); err != nil || ofFluxAPI.MatchString(value) {
					t.Errorf("%s: %s is a name of Flux's API: take it from the module of that API", files.Position(literal.Pos()), literal.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if checked < 1000 {
		t.Errorf("only %d literals: check the list of folders", checked)
	}
}
