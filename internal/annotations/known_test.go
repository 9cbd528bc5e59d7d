package annotations_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/annotations"
)

func TestUnknownAnnotations(t *testing.T) {
	for key, want := range map[string]string{
		"open.gate.fluxcd.io/requestedat":      "unknown annotation, did you mean open.gate.fluxcd.io/requestedAt?",
		"open.gate.fluxcd.io/requested-at":     "unknown annotation, did you mean open.gate.fluxcd.io/requestedAt?",
		"open.gate.fluxcd.io/request":          "unknown annotation: it has no effect",
		"opne.gate.fluxcd.io/requestedAt":      "unknown annotation, did you mean open.gate.fluxcd.io/requestedAt?",
		"gating.toolkit.fluxcd.io/held-by":     "unknown annotation, did you mean gating.toolkit.fluxcd.io/heldBy?",
		"gating.toolkit.fluxcd.io/gate":        "unknown annotation, did you mean gating.toolkit.fluxcd.io/gates?",
		"approve.gate.fluxcd.io/revision":      "unknown annotation: it has no effect",
		"gate.fluxcd.io/requestedAt":           "unknown annotation: it has no effect",
		"open.gate.fluxcd.io/requestedAt":      "",
		"gating.toolkit.fluxcd.io/heldBy":      "",
		"gating.toolkit.fluxcd.io/suspendedBy": "",
		"reconcile.fluxcd.io/requestedAt":      "",
		"example.com/heldby":                   "",
		"mygating.toolkit.fluxcd.io/x":         "",
		"note":                                 "",
	} {
		got := ""
		for _, p := range annotations.Unknown(map[string]string{key: ""}) {
			if got = p.Cause; p.Key != key {
				t.Errorf("%s: the problem is with %s", key, p.Key)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestAnnotationsNotForManifests(t *testing.T) {
	for key, want := range map[string]string{
		"gating.toolkit.fluxcd.io/heldBy":    "only the controller writes it: remove it from the manifest",
		"approve.gate.fluxcd.io/requestedBy": "only the API server writes it, with config/policies: remove it from the manifest",
		"gating.toolkit.fluxcd.io/heldby":    "unknown annotation, did you mean gating.toolkit.fluxcd.io/heldBy?",
		"gating.toolkit.fluxcd.io/gates":     "",
		"open.gate.fluxcd.io/requestedAt":    "",
		"open.gate.fluxcd.io/requestedBy":    "",
	} {
		got := ""
		for _, p := range annotations.InManifest(map[string]string{key: ""}) {
			got += p.Cause
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
}

func TestAllAPIAnnotationsAreKnown(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/annotations.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	prefixes := map[string]string{"api.Group": "gating.toolkit.fluxcd.io"}
	for _, verb := range []string{"open", "close", "pass", "proceed", "approve", "rollback"} {
		prefixes[verb+"Prefix"] = verb + ".gate.fluxcd.io/"
	}
	seen := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasSuffix(spec.Names[0].Name, "Annotation") {
			return true
		}
		sum, isSum := spec.Values[0].(*ast.BinaryExpr)
		if !isSum {
			t.Errorf("%s is not a sum of a prefix and a name", spec.Names[0].Name)
			return false
		}
		prefix := ""
		switch x := sum.X.(type) {
		case *ast.Ident:
			prefix = x.Name
		case *ast.SelectorExpr:
			prefix = "api." + x.Sel.Name
		}
		name, isName := sum.Y.(*ast.BasicLit)
		if !isName || prefixes[prefix] == "" {
			t.Errorf("%s: cannot be read", spec.Names[0].Name)
			return false
		}
		seen++
		if key := prefixes[prefix] + strings.Trim(name.Value, `"`); len(annotations.Unknown(map[string]string{key: ""})) > 0 {
			t.Errorf("%s is unknown", key)
		}
		return false
	})
	if seen < 25 {
		t.Errorf("only %d annotations", seen)
	}
}
