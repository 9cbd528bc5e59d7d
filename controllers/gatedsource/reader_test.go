package gatedsource

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestCombinedStateOfGates(t *testing.T) {
	gate := func(name string, effect verdict.Effect, opened metav1.ConditionStatus) verdict.Gate {
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
		if opened != "" {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: opened, Reason: v1alpha1.DefaultReason}}
		}
		return verdict.Gate{Name: "shop/" + name, Effect: effect, Governs: true, Object: g}
	}
	open, closed := gate("open", verdict.Open, metav1.ConditionTrue), gate("closed", verdict.Closed, metav1.ConditionFalse)
	undecided := gate("new", verdict.Undecided, "")
	for name, tc := range map[string]struct {
		gates  []verdict.Gate
		open   bool
		reason string
		says   string
	}{
		"no gate":                 {nil, true, v1alpha1.GateOpenedReason, ""},
		"open":                    {[]verdict.Gate{open}, true, v1alpha1.GateOpenedReason, "shop/open"},
		"closed":                  {[]verdict.Gate{closed}, false, v1alpha1.GateClosedReason, "shop/closed"},
		"one of two is closed":    {[]verdict.Gate{open, closed}, false, v1alpha1.GateClosedReason, "shop/closed"},
		"undecided":               {[]verdict.Gate{undecided}, false, "", ""},
		"one of two is undecided": {[]verdict.Gate{open, undecided}, false, "", ""},
		"due to close":            {[]verdict.Gate{gate("due", verdict.Closed, metav1.ConditionTrue)}, false, v1alpha1.GateClosedReason, "shop/due"},
		"suspended while open":    {[]verdict.Gate{gate("a", verdict.Suspended, metav1.ConditionTrue)}, true, v1alpha1.GateOpenedReason, ""},
		"suspended while closed":  {[]verdict.Gate{gate("a", verdict.Suspended, metav1.ConditionFalse)}, false, "", ""},
		"missing":                 {[]verdict.Gate{open, {Name: "shop/missing", Effect: verdict.Missing}}, false, v1alpha1.GateNotFoundReason, "shop/missing"},
		"denied":                  {[]verdict.Gate{{Name: "bank/denied", Effect: verdict.Denied}}, false, v1alpha1.AccessDeniedReason, "bank/denied"},
		"in another shard":        {[]verdict.Gate{{Name: "shop/a", Effect: verdict.OtherShard}}, false, "", ""},
	} {
		if got := combined(tc.gates, start); got.Open != tc.open || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSourceFacts(t *testing.T) {
	const generation = 2
	ready := func(status metav1.ConditionStatus, of int64) map[string]any {
		return map[string]any{"type": "Ready", "status": string(status), "reason": "Test", "observedGeneration": of}
	}
	type object = map[string]any
	for name, tc := range map[string]struct {
		kind         string
		spec, status object
		// want has the names of the facts that are true.
		want string
	}{
		"fetched":                         {"GitRepository", nil, object{"observedGeneration": int64(generation), "conditions": []any{ready("True", generation)}}, "current unchanged"},
		"not fetched since an edit":       {"GitRepository", nil, object{"observedGeneration": int64(1)}, "unchanged"},
		"cannot be fetched since an edit": {"GitRepository", nil, object{"observedGeneration": int64(1), "conditions": []any{ready("False", generation)}}, "unchanged failed"},
		"could not be fetched before":     {"GitRepository", nil, object{"observedGeneration": int64(1), "conditions": []any{ready("False", 1)}}, "unchanged"},
		"can no longer be fetched":        {"GitRepository", nil, object{"observedGeneration": int64(generation), "conditions": []any{ready("False", 1)}}, "current unchanged failed"},
		"another URL":                     {"GitRepository", object{"url": "https://git.example.com/moved"}, nil, "unchanged"},
		"ignores other files":             {"GitRepository", object{"ignore": "/tests"}, nil, ""},
		"ignores the same files":          {"GitRepository", object{"ignore": "/tests"}, object{"observedIgnore": "/tests"}, "unchanged"},
		"other submodules":                {"GitRepository", object{"recurseSubmodules": true}, nil, ""},
		"no submodules":                   {"GitRepository", object{"recurseSubmodules": false}, nil, "unchanged"},
		"a chart may differ at its URL":   {"HelmChart", nil, nil, ""},
	} {
		obj := &unstructured.Unstructured{Object: object{"spec": tc.spec, "status": tc.status}}
		obj.SetAPIVersion("source.toolkit.fluxcd.io/v1")
		obj.SetKind(tc.kind)
		obj.SetGeneration(generation)
		s := newSource(obj, "")
		var got []string
		for _, fact := range []struct {
			name string
			is   bool
		}{{"current", s.Current}, {"unchanged", s.Unchanged}, {"failed", s.Failed}} {
			if fact.is {
				got = append(got, fact.name)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: got %v, want %s", name, got, tc.want)
		}
	}
}
