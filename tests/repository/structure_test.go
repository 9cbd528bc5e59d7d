package repository

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxMethods         = 15
	maxParameters      = 5
	maxReconcileLines  = 40
	maxFilesInOneCycle = 3
)

// controllersFile is a parsed file of the controllers.
type controllersFile struct {
	name string
	*ast.File
}

// controllersFiles parses the files of the controllers, tests left out.
func controllersFiles(t *testing.T) (*token.FileSet, []controllersFile) {
	t.Helper()
	set := token.NewFileSet()
	var files []controllersFile
	err := filepath.WalkDir(filepath.Join(root, "controllers"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && filepath.Base(filepath.Dir(path)) == "controllers" {
			return filepath.SkipDir // a package of its own
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		files = append(files, controllersFile{filepath.Base(path), file})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	return set, files
}

// receiverOf returns the type that a function is a method of, empty if it is none.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return fmt.Sprintf("%T", expr)
		}
	}
}

func TestNoTypeOfTheControllersHasManyMethods(t *testing.T) {
	_, files := controllersFiles(t)
	methods := map[string]int{}
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[receiverOf(f)]++
			}
		}
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, at most %d are readable", name, n, maxMethods)
		}
	}
}

func TestTheFunctionsOfTheControllersAreShortAndTakeLittle(t *testing.T) {
	set, files := controllersFiles(t)
	reconcilers := 0
	for _, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.Type.Params.NumFields(); n > maxParameters {
				t.Errorf("%s in %s has %d parameters", f.Name.Name, file.name, n)
			}
			if f.Name.Name != "Reconcile" {
				continue
			}
			reconcilers++
			if lines := set.Position(f.Body.Rbrace).Line - set.Position(f.Body.Lbrace).Line - 1; lines > maxReconcileLines {
				t.Errorf("%s.Reconcile in %s has %d lines, it is to read like a table of contents", receiverOf(f), file.name, lines)
			}
		}
	}
	if reconcilers < 6 {
		t.Errorf("only %d reconcilers", reconcilers)
	}
}

func TestNoStructOfTheControllersIsASideMemoryOrCarriesClosures(t *testing.T) {
	_, files := controllersFiles(t)
	for _, file := range files {
		ast.Inspect(file.File, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "Map" {
				if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "sync" {
					t.Errorf("%s has a sync.Map", file.name)
				}
			}
			return true
		})
	}
}

// exports returns where the compiled packages are that the controllers import.
func exports(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./controllers")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[path] = file
		}
	}
	return files
}

// use is one of something that is declared, in a file.
type use struct {
	file string
	of   types.Object
}

// typed returns all that the controllers use, and their package. Files are by their base names.
func typed(t *testing.T) (*token.FileSet, *types.Package, []use) {
	t.Helper()
	set, files := controllersFiles(t)
	compiled := exports(t)
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	var parsed []*ast.File
	for _, file := range files {
		parsed = append(parsed, file.File)
	}
	pkg, err := config.Check(module+"controllers", set, parsed, info)
	if err != nil {
		t.Fatal(err)
	}
	var all []use
	for ident, object := range info.Uses {
		all = append(all, use{filepath.Base(set.Position(ident.Pos()).Filename), object})
	}
	return set, pkg, all
}

// mayWrite lists what a file of the controllers may call of a client that writes. docs/contribute/design.md says who writes what.
var mayWrite = map[string][]string{
	"gate_writer.go":          {"Write", "WriteStatus"},           // Gates: their status and their finalizer
	"gate_pass.go":            {"WriteStatus"},                    // the status of Gates
	"target_writer.go":        {"Patch", "Apply"},                 // targets and their conditions
	"target_activation.go":    {"Create", "Patch"},                // Secrets of an activation
	"lock_controller.go":      {"Create", "Update"},               // GateLocks
	"exception_controller.go": {"Write", "WriteStatus", "Delete"}, // GateExceptions
	"gatedsource_writer.go":   {"WriteStatus", "Create", "Patch"}, // the status of GatedSources, and what they have pinned
	"path_controller.go":      {"WriteStatus"},                    // GateReceivers, CalendarFeeds
}

func TestEachThingIsWrittenByOneFileOfTheControllers(t *testing.T) {
	_, _, all := typed(t)
	found := map[string]bool{}
	for _, u := range all {
		f, ok := u.of.(*types.Func)
		if !ok || f.Pkg() == nil || !slices.Contains([]string{"sigs.k8s.io/controller-runtime/pkg/client", module + "controllers/ownwrites"}, f.Pkg().Path()) {
			continue
		}
		if !slices.Contains([]string{"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf", "Write", "WriteStatus"}, f.Name()) {
			continue
		}
		found[u.file+" "+f.Name()] = true
		if !slices.Contains(mayWrite[u.file], f.Name()) {
			t.Errorf("%s calls %s: it is none of those that write", u.file, f.Name())
		}
	}
	for file, verbs := range mayWrite {
		for _, verb := range verbs {
			if !found[file+" "+verb] {
				t.Errorf("%s does not call %s any more", file, verb)
			}
		}
	}
}

// uses returns by file the files from which it uses something.
func uses(t *testing.T) map[string]map[string]bool {
	t.Helper()
	set, pkg, all := typed(t)
	used := map[string]map[string]bool{}
	for _, u := range all {
		from, object := u.file, u.of
		if used[from] == nil {
			used[from] = map[string]bool{}
		}
		if object.Pkg() != pkg || !object.Pos().IsValid() || isLocal(object, pkg) {
			continue
		}
		if to := filepath.Base(set.Position(object.Pos()).Filename); to != from {
			used[from][to] = true
		}
	}
	return used
}

// isLocal returns whether an object is declared in a function.
func isLocal(object types.Object, pkg *types.Package) bool {
	if f, ok := object.(*types.Func); ok && f.Signature().Recv() != nil {
		return false
	}
	if v, ok := object.(*types.Var); ok && v.IsField() {
		return false
	}
	return object.Parent() != pkg.Scope()
}

// reach returns all that is used by a file, and by what it uses.
func reach(used map[string]map[string]bool, from string) map[string]bool {
	reached := map[string]bool{}
	var visit func(string)
	visit = func(file string) {
		for next := range used[file] {
			if !reached[next] {
				reached[next] = true
				visit(next)
			}
		}
	}
	visit(from)
	return reached
}

func TestNoFileOfTheControllersIsInALargeCycle(t *testing.T) {
	used := uses(t)
	reached := map[string]map[string]bool{}
	for file := range used {
		reached[file] = reach(used, file)
	}
	told := map[string]bool{}
	for file := range used {
		var cycle []string
		for other := range used {
			if reached[file][other] && reached[other][file] {
				cycle = append(cycle, other)
			}
		}
		slices.Sort(cycle)
		if name := strings.Join(cycle, ", "); len(cycle) > maxFilesInOneCycle && !told[name] {
			told[name] = true
			t.Errorf("%d files use one another: %s", len(cycle), name)
			for _, a := range cycle {
				for _, b := range cycle {
					if used[a][b] {
						t.Logf("  %s uses %s", a, b)
					}
				}
			}
		}
	}
}
