package gate_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/gate"
)

// object returns the content of an object with a condition Ready, none if status is
// empty.
func object(status, reason, message string) map[string]any {
	conditions := []any{map[string]any{"type": "Healthy", "status": "True"}}
	if status != "" {
		conditions = append(conditions, map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message})
	}
	return map[string]any{
		"metadata": map[string]any{"name": "staging", "generation": int64(3), "annotations": map[string]any{"version": "1.2"}},
		"spec":     map[string]any{"path": "./staging"},
		"status":   map[string]any{"observedGeneration": int64(3), "conditions": conditions},
	}
}

func TestReadyExpressions(t *testing.T) {
	self := map[string]any{"metadata": map[string]any{"name": "production", "annotations": map[string]any{"version": "1.2"}}}
	ready, failed := object("True", "Succeeded", "Applied"), object("False", "BuildFailed", "no such file")
	for name, tc := range map[string]struct {
		dep       map[string]any
		readyExpr string
		// message is empty if the object is ready.
		message string
	}{
		"missing, with an expression": {dep: nil, readyExpr: "true", message: "does not exist"},
		"an expression that is true":  {dep: failed, readyExpr: "dep.metadata.generation == dep.status.observedGeneration"},
		"an expression that is false": {
			dep: ready, readyExpr: "dep.spec.path == './production'", message: "readyExpr is false"},
		"an expression on the gate": {dep: failed, readyExpr: "dep.metadata.annotations['version'] == self.metadata.annotations['version']"},
		"an expression on conditions": {
			dep: failed, readyExpr: "dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", message: "readyExpr is false"},
		"an expression on a field that is not there": {
			dep: ready, readyExpr: "dep.status.lastAppliedRevision == 'v1'", message: "readyExpr: no such key: lastAppliedRevision"},
		"a long expression on a field that is not there": {
			dep: ready, readyExpr: "dep.status.missing == '" + strings.Repeat("x", 1000) + "'", message: "readyExpr: no such key: missing"},
		"an expression of the wrong type": {dep: ready, readyExpr: "dep.spec.path.size() > dep.spec.path", message: "readyExpr: no such overload"},
	} {
		t.Run(name, func(t *testing.T) {
			ready, message := gate.EvaluateReadyExpr(t.Context(), tc.dep, self, tc.readyExpr)
			if ready != (tc.message == "") || message != tc.message {
				t.Errorf("got %v, %q; want %q", ready, message, tc.message)
			}
		})
	}
}

func TestExpressionOverBudgetIsNotReady(t *testing.T) {
	dep := map[string]any{"spec": map[string]any{"list": make([]any, 3000)}}
	ready, message := gate.EvaluateReadyExpr(t.Context(), dep, nil, "dep.spec.list.all(a, dep.spec.list.all(b, dep.spec.list.all(c, a == b || b == c || true)))")
	if ready || !strings.HasPrefix(message, "readyExpr: operation ") {
		t.Errorf("got %v, %q", ready, message)
	}
}
