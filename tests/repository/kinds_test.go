package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/target"
)

// mayCompareKinds lists how often a file outside internal/target may compare kinds of targets. All others use the roles of adapters.
var mayCompareKinds = map[string]int{
	"internal/cli/see/pending_diff.go":   3,  // the plugin builds Kustomizations, and finds the objects that use a source of a GatedSource
	"internal/cli/see/pending_source.go": 1,  // for the same purpose
	"internal/promotion/pin.go":          11, // the adapter of the kinds of sources: how each is pinned to a revision
}

func TestOnlyTargetPackageComparesKinds(t *testing.T) {
	kinds := map[string]bool{}
	for _, adapter := range target.All() {
		kind := adapter.GroupKind().Kind
		kinds[strconv.Quote(kind)], kinds["target."+kind] = true, true
		kinds[kind+"Kind"] = true
	}
	found := map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(root, path)
		switch {
		case err != nil || relErr != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || name == "tests" || name == filepath.Join("internal", "target")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			for _, operand := range compared(node) {
				if kinds[kindIn(operand)] {
					if found[name]++; found[name] > mayCompareKinds[name] {
						t.Errorf("%s compares the kind of a target: use a role of internal/target/roles.go", positions.Position(operand.Pos()))
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range mayCompareKinds {
		if found[name] < n {
			t.Errorf("%s compares kinds %d times, not %d", name, found[name], n)
		}
	}
}

// compared returns the operands of a comparison or of a case.
func compared(node ast.Node) []ast.Expr {
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return []ast.Expr{n.X, n.Y}
		}
	case *ast.CaseClause:
		return n.List
	}
	return nil
}

// kindIn returns the kind in an operand, as a literal, a constant of an API module or a variable of internal/target.
func kindIn(operand ast.Expr) string {
	switch e := operand.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok && pkg.Name == "target" {
			return "target." + e.Sel.Name
		}
		if inner, ok := e.X.(*ast.SelectorExpr); ok && e.Sel.Name == "Kind" {
			return kindIn(inner)
		}
		return e.Sel.Name
	}
	return ""
}
