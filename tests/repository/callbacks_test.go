package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// calledLocked lists the functions that may be called under a lock, by file and name. Each begins a watch and calls no function back. The
// lock ensures that each ConfigMap is watched only once.
var calledLocked = []string{"controllers/calendars/reader.go Watches", "internal/calendarfeed/source.go Watch", "internal/webauth/source.go Watch"}

// lockedCalls returns the names of the functions that code calls while it holds a lock: parameters of a function type, and fields of the
// receiver that are functions in the structs of its package.
func lockedCalls(file *ast.File, fields map[string]bool) (names []string) {
	receiver := ""
	var visit func(body *ast.BlockStmt, parameters map[string]bool)
	visit = func(body *ast.BlockStmt, parameters map[string]bool) {
		locked, deferred := false, map[*ast.CallExpr]bool{}
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit: // may be called later
				visit(n.Body, withFunctions(parameters, n.Type))
				return false
			case *ast.DeferStmt:
				deferred[n.Call] = true
			case *ast.CallExpr:
				switch f := n.Fun.(type) {
				case *ast.Ident:
					if locked && parameters[f.Name] {
						names = append(names, f.Name)
					}
				case *ast.SelectorExpr:
					switch name := f.Sel.Name; {
					case deferred[n]:
					case name == "Lock" || name == "RLock":
						locked = true
					case name == "Unlock" || name == "RUnlock" || name == "unlock":
						locked = false
					case locked && fields[name] && rootOf(f) == receiver:
						names = append(names, name)
					}
				}
			}
			return true
		})
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			if receiver = ""; f.Recv != nil && len(f.Recv.List[0].Names) > 0 {
				receiver = f.Recv.List[0].Names[0].Name
			}
			visit(f.Body, withFunctions(nil, f.Type))
		}
	}
	return names
}

// rootOf returns the first name of a selector.
func rootOf(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.SelectorExpr:
		return rootOf(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return ""
}

// withFunctions adds the parameters of a function type that are functions.
func withFunctions(outer map[string]bool, f *ast.FuncType) map[string]bool {
	all := map[string]bool{}
	for name := range outer {
		all[name] = true
	}
	for _, p := range f.Params.List {
		_, isFunction := p.Type.(*ast.FuncType)
		for _, name := range p.Names {
			all[name.Name] = isFunction
		}
	}
	return all
}

// functionFields adds the fields of structs that are functions.
func functionFields(file *ast.File, fields map[string]bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				if _, ok := f.Type.(*ast.FuncType); ok {
					for _, name := range f.Names {
						fields[name.Name] = true
					}
				}
			}
		}
		return true
	})
}

func TestNoCallbackUnderLock(t *testing.T) {
	files, fields := map[string]*ast.File{}, map[string]map[string]bool{}
	for _, folder := range []string{"cmd", "controllers", "internal", "receivers"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(name)] = file
			if fields[filepath.Dir(path)] == nil {
				fields[filepath.Dir(path)] = map[string]bool{}
			}
			functionFields(file, fields[filepath.Dir(path)])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for name, file := range files {
		for _, f := range lockedCalls(file, fields[filepath.Join(root, filepath.Dir(name))]) {
			found = append(found, name+" "+f)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, calledLocked) {
		t.Errorf("called under a lock: %q, want %q: return a value, or call after unlocking", found, calledLocked)
	}
}

func TestLockedCallsAreDetected(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "", `package p
type table struct { mu sync.Mutex; added func() }
func (t *table) deferred(do func()) { t.mu.Lock(); defer t.mu.Unlock(); do(); t.added() }
func (t *table) between(do, later func()) { t.mu.Lock(); if true { do() }; t.mu.Unlock(); later(); t.added() }
func (t *table) returned(later func()) func() { t.mu.RLock(); defer t.mu.RUnlock(); return func() { later() } }
func (t *table) never(do func()) { do() }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	functionFields(file, fields)
	if got := lockedCalls(file, fields); !slices.Equal(got, []string{"do", "added", "do"}) {
		t.Errorf("got %q", got)
	}
}
