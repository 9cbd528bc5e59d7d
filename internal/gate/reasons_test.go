package gate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// stringConstants returns the string constants of a file whose declared type is
// named typ, or that have no type if typ is empty.
func stringConstants(t *testing.T, file, typ string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, _ := spec.Type.(*ast.Ident)
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || (name == nil) != (typ == "") || name != nil && name.Name != typ {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		constants[value] = spec.Names[0].Name
		return true
	})
	return constants
}

// The engine may not import the API, so that nothing but this test ties their
// words together.
func TestEngineReasonsAreInAPI(t *testing.T) {
	reasons := stringConstants(t, "../schedule/plan.go", "Reason")
	if len(reasons) < 9 {
		t.Fatalf("found only %v", reasons)
	}
	api := stringConstants(t, "../../api/v1alpha1/conditions.go", "")
	for value, name := range reasons {
		if api[value] != name+"Reason" {
			t.Errorf("schedule.%s is %q, the API has no constant %sReason of that value", name, value, name)
		}
	}
}
