package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api"
)

// Flux may adopt this API under other names, so only api/names.go defines them. Tests and markers in comments may repeat them.
func TestProposedNamesAreInOneFile(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || path == filepath.Join(root, "tests")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, 0)
		if err != nil {
			return err
		}
		files++
		ast.Inspect(file, func(node ast.Node) bool {
			if _, imports := node.(*ast.ImportSpec); imports {
				return false
			}
			text, ok := node.(*ast.BasicLit)
			if !ok || path == filepath.Join(root, "api", "names.go") {
				return true
			}
			for _, name := range []string{api.Group, api.RequestDomain, api.Module} {
				if strings.Contains(text.Value, name) {
					t.Errorf("%s has %s, use the constant in api/names.go", positions.Position(text.Pos()), name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("only %d files read: %v", files, err)
	}
}
