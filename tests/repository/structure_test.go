package repository

import (
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

// mayWrite lists the write methods of clients that each file of the controllers may call. docs/contribute/design.md names the writer of
// each object.
var mayWrite = map[string][]string{
	"gate/writer.go":          {"Write", "WriteStatus"},           // Gates: status and finalizer
	"gate/pass.go":            {"WriteStatus"},                    // the status of Gates
	"target/writer.go":        {"Patch", "Apply"},                 // targets and their conditions
	"target/activation.go":    {"Create", "Patch"},                // Secrets of an activation
	"lock/reconciler.go":      {"Create", "Update"},               // GateLocks
	"exception/reconciler.go": {"Write", "WriteStatus", "Delete"}, // GateExceptions
	"gatedsource/writer.go":   {"WriteStatus", "Create", "Patch"}, // the status of GatedSources, and their pinned sources
	"receiver/reconciler.go":  {"WriteStatus"},                    // GateReceivers, CalendarFeeds
	"machine/annotations.go":  {"Patch", "Apply"},                 // annotations of Machines
	"machine/fleet.go":        {"WriteStatus"},                    // MachineCertificateRefreshes
	"ownwrites/client.go":     {"Patch"},                          // on behalf of the writers above
	"ownwrites/writer.go":     {"Patch"},
}

func TestEachObjectHasOneWriter(t *testing.T) {
	found := map[string]bool{}
	for file, called := range callsByFile(t) {
		for _, f := range called {
			if f.Pkg() == nil || !slices.Contains([]string{"sigs.k8s.io/controller-runtime/pkg/client", module + "controllers/ownwrites"}, f.Pkg().Path()) ||
				!slices.Contains([]string{"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf", "Write", "WriteStatus"}, f.Name()) {
				continue
			}
			found[file+" "+f.Name()] = true
			if !slices.Contains(mayWrite[file], f.Name()) {
				t.Errorf("%s calls %s, but is not a writer", file, f.Name())
			}
		}
	}
	for file, verbs := range mayWrite {
		for _, verb := range verbs {
			if !found[file+" "+verb] {
				t.Errorf("%s no longer calls %s", file, verb)
			}
		}
	}
}

// callsByFile returns the functions that each file below controllers calls, by path, without tests.
func callsByFile(t *testing.T) map[string][]*types.Func {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./controllers/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			compiled[path] = file
		}
	}
	set, calls := token.NewFileSet(), map[string][]*types.Func{}
	for path := range compiled {
		folder, ours := strings.CutPrefix(path, module+"controllers/")
		if !ours || folder == "controllertest" { // it writes like users and other controllers
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, "controllers", folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var parsed []*ast.File
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })}
		if _, err := config.Check(path, set, parsed, info); err != nil {
			t.Fatal(err)
		}
		for ident, object := range info.Uses {
			if f, ok := object.(*types.Func); ok {
				file := folder + "/" + filepath.Base(set.Position(ident.Pos()).Filename)
				calls[file] = append(calls[file], f)
			}
		}
	}
	return calls
}
