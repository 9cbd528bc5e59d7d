package repository

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compiledPackage is a package as "go list" prints it.
type compiledPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
	DepOnly                 bool
}

// TestOnlyGatePackageWritesGateStatus checks that all other packages take the status of a Gate as a value.
func TestOnlyGatePackageWritesGateStatus(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports,DepOnly", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exported, checked := map[string]string{}, 0
	var packages []compiledPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p compiledPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exported[p.ImportPath] = p.Export
		if slices.Contains(p.Imports, module+"api/v1alpha1") && p.ImportPath != module+"internal/gate" {
			packages = append(packages, p)
		}
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) })
	for _, p := range packages {
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
		if _, err := (&types.Config{Importer: imports}).Check(p.ImportPath, set, files, info); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for n := range ast.Preorder(file) {
				if writesGateStatus(info, n) {
					t.Errorf("%s writes a field of GateStatus: only internal/gate does", set.Position(n.Pos()))
				}
			}
		}
		checked++
	}
	if checked < 10 {
		t.Errorf("checked %d packages", checked)
	}
}

// writesGateStatus returns whether a statement assigns a field of GateStatus, takes its address, or sets a condition of a Gate.
func writesGateStatus(info *types.Info, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return isInGateStatus(info, e) })
	case *ast.IncDecStmt:
		return isInGateStatus(info, n.X)
	case *ast.UnaryExpr:
		selector, ok := n.X.(*ast.SelectorExpr)
		return ok && n.Op == token.AND && isInGateStatus(info, selector)
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) == 0 || !isNamed(info.TypeOf(n.Args[0]), "Gate") {
			return false
		}
		f := info.Uses[called.Sel]
		return f != nil && f.Pkg() != nil && f.Pkg().Path() == "github.com/fluxcd/pkg/runtime/conditions" &&
			(strings.HasPrefix(f.Name(), "Mark") || strings.HasPrefix(f.Name(), "Set") || f.Name() == "Delete")
	}
	return false
}

// isInGateStatus returns whether an expression is a field of GateStatus, or is in one.
func isInGateStatus(info *types.Info, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		selection := info.Selections[e]
		return selection != nil && isNamed(selection.Recv(), "GateStatus") || isInGateStatus(info, e.X)
	case *ast.IndexExpr:
		return isInGateStatus(info, e.X)
	case *ast.StarExpr:
		return isInGateStatus(info, e.X)
	}
	return false
}

// isNamed returns whether a type, or the type that it points to, is an API type with a name.
func isNamed(of types.Type, name string) bool {
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	named, ok := of.(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg().Path() == module+"api/v1alpha1"
}
