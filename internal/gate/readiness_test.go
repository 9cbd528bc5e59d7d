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

func TestReadinessOfAnObject(t *testing.T) {
	self := map[string]any{"metadata": map[string]any{"name": "production", "annotations": map[string]any{"version": "1.2"}}}
	ready, failed := object("True", "Succeeded", "Applied"), object("False", "BuildFailed", "no such file")
	reconciling := object("Unknown", "Progressing", "Reconciliation in progress")
	deleted := object("True", "Succeeded", "Applied")
	deleted["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-23T12:00:00Z" //nolint:forcetypeassert // of object
	for name, tc := range map[string]struct {
		dep       map[string]any
		readyExpr string
		was       bool
		// message is empty if the object is ready.
		message string
	}{
		"missing":                                {dep: nil, was: true, message: "does not exist"},
		"missing, with an expression":            {dep: nil, readyExpr: "true", message: "does not exist"},
		"ready":                                  {dep: ready},
		"failed":                                 {dep: failed, was: true, message: "BuildFailed: no such file"},
		"new, without a status":                  {dep: map[string]any{}, was: true, message: "has no condition Ready"},
		"without the condition":                  {dep: object("", "", ""), was: true, message: "has no condition Ready"},
		"with conditions of another form":        {dep: map[string]any{"status": map[string]any{"conditions": "Ready"}}, message: "has no condition Ready"},
		"with a condition of another form":       {dep: map[string]any{"status": map[string]any{"conditions": []any{"Ready"}}}, message: "has no condition Ready"},
		"with a status of another form":          {dep: object("true", "Odd", ""), message: "Odd: "},
		"being reconciled, ready before":         {dep: reconciling, was: true},
		"being reconciled, not ready before":     {dep: reconciling, message: "Progressing: Reconciliation in progress"},
		"unknown for another reason":             {dep: object("Unknown", "Stuck", "no answer"), was: true, message: "Stuck: no answer"},
		"failed while retried":                   {dep: object("False", "Progressing", "retrying"), was: true, message: "Progressing: retrying"},
		"being deleted is as its conditions say": {dep: deleted},

		"an expression that is true": {dep: failed, readyExpr: "dep.metadata.generation == dep.status.observedGeneration"},
		"an expression that is false": {
			dep: ready, readyExpr: "dep.spec.path == './production'", was: true, message: "readyExpr is false"},
		"an expression on the gate": {dep: failed, readyExpr: "dep.metadata.annotations['version'] == self.metadata.annotations['version']"},
		"an expression on conditions": {
			dep: failed, readyExpr: "dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", message: "readyExpr is false"},
		"an expression on a field that is not there": {
			dep: ready, readyExpr: "dep.status.lastAppliedRevision == 'v1'", was: true, message: "readyExpr: no such key: lastAppliedRevision"},
		"a long expression on a field that is not there": {
			dep: ready, readyExpr: "dep.status.missing == '" + strings.Repeat("x", 1000) + "'", message: "readyExpr: no such key: missing"},
		"an expression of the wrong type": {dep: ready, readyExpr: "dep.spec.path.size() > dep.spec.path", message: "readyExpr: no such overload"},
	} {
		t.Run(name, func(t *testing.T) {
			ready, message := gate.Readiness(t.Context(), tc.dep, self, tc.readyExpr, tc.was)
			if ready != (tc.message == "") || message != tc.message {
				t.Errorf("got %v, %q; want %q", ready, message, tc.message)
			}
		})
	}
}

func TestAnExpressionWithoutEndIsNotReady(t *testing.T) {
	dep := map[string]any{"spec": map[string]any{"list": make([]any, 3000)}}
	ready, message := gate.Readiness(t.Context(), dep, nil, "dep.spec.list.all(a, dep.spec.list.all(b, dep.spec.list.all(c, a == b || b == c || true)))", true)
	if ready || !strings.HasPrefix(message, "readyExpr: operation ") {
		t.Errorf("got %v, %q", ready, message)
	}
}
