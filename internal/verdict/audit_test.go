package verdict_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestEffectOfModeAuditOnGovernedTarget(t *testing.T) {
	for name, test := range map[string]struct {
		gate        *v1alpha1.Gate
		stand, want verdict.Effect
		audits      bool
	}{
		"open":                                {opened("a", audits), verdict.Open, verdict.Open, true},
		"closed":                              {closed("a", audits), verdict.Open, verdict.Closed, true},
		"its spec has changed":                {closed("a", audits, edited), verdict.Undecided, verdict.Undecided, true},
		"nobody has looked at it":             {closed("a", audits, untold), verdict.Undecided, verdict.Undecided, true},
		"it is suspended":                     {closed("a", audits, suspended), verdict.Suspended, verdict.Suspended, true},
		"its spec is invalid":                 {closed("a", audits, because(v1alpha1.InvalidSpecReason, "")), verdict.Suspended, verdict.Closed, true},
		"it is due to close":                  {opened("a", audits, next(0, v1alpha1.StateClosed)), verdict.Open, verdict.Undecided, true},
		"it is due to open":                   {closed("a", audits, next(0, v1alpha1.StateOpened)), verdict.Open, verdict.Closed, true},
		"it is deleted":                       {closed("a", audits, deleted), verdict.Open, verdict.Open, false},
		"it is deleted while it is suspended": {closed("a", audits, suspended, deleted), verdict.Open, verdict.Open, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdict.Governing("shop/a", test.gate, noon)
			if got.Effect != test.stand || got.Would != test.want || got.Audits != test.audits || got.Governs {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTargetNamingGateWithModeAudit(t *testing.T) {
	everywhere := verdict.Scope{Reaches: func(string, string) bool { return true }}
	nowhere := verdict.Scope{Reaches: func(from, to string) bool { return from == to }}
	inInfra := func(g *v1alpha1.Gate) { g.Namespace = "infra" }
	governs := func(g *v1alpha1.Gate) {
		g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps", Namespace: "shop"}}
	}
	names := annotated(v1alpha1.GatesAnnotation, "infra/a")
	for name, test := range map[string]struct {
		scope  verdict.Scope
		gate   *v1alpha1.Gate
		obj    *target.Object
		stand  verdict.Effect
		audits bool
	}{
		"is not held":                                {everywhere, closed("a", audits, inInfra), kustomization("apps", names), verdict.Open, true},
		"is held if it must not name it":             {nowhere, closed("a", audits, inInfra), kustomization("apps", names), verdict.Denied, false},
		"is held if the gate is about to be gone":    {everywhere, closed("a", audits, inInfra, deleted), kustomization("apps", names), verdict.Missing, false},
		"is let go if the gate no longer reaches it": {nowhere, closed("a", audits, inInfra, governs), kustomization("apps", heldBy("infra/a", suspension)), verdict.Open, false},
		"is let go if the gate governs it no more":   {everywhere, closed("a", audits, inInfra), kustomization("apps", heldBy("infra/a", suspension)), verdict.Open, false},
		"is let go if the gate still governs it":     {everywhere, closed("a", audits, inInfra, governs), kustomization("apps", heldBy("infra/a", suspension)), verdict.Open, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := test.scope.About(test.gate, &test.obj.Unstructured, noon)
			if !ok || got.Effect != test.stand || got.Audits != test.audits || got.Governs {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}

// TestGateWithModeAuditChangesNothing compares what happens to a target under such a Gate and without it: the same, in all that
// can be.
func TestGateWithModeAuditChangesNothing(t *testing.T) {
	seen, named := 0, 0
	everySituation(func(s situation) {
		decided := func(g verdict.Gate) bool { return g.Audits && g.Effect == verdict.Open }
		without := slices.DeleteFunc(slices.Clone(s.gates), decided)
		if len(without) == len(s.gates) {
			return
		}
		seen++
		v, w := verdict.Judge(s.Observed, s.gates), verdict.Judge(s.Observed, without)
		got, want := verdict.Next(s.Observed, v, s.plan), verdict.Next(s.Observed, w, s.plan)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", s, got, want)
		}
		for _, g := range s.gates {
			if decided(g) && slices.Contains(s.HeldBy, g.Name) {
				named++
				if got.Write && slices.Contains(got.Names, g.Name) {
					t.Errorf("%s\nits name stays: %+v", s, got)
				}
			}
		}
		if v.Again != w.Again || v.Resumed != w.Resumed || v.Waits != w.Waits || !slices.Equal(v.Open, w.Open) {
			t.Errorf("%s\ngot  %+v\nwant %+v", s, v, w)
		}
	})
	if seen == 0 || named == 0 {
		t.Errorf("%d tried, %d with its name", seen, named)
	}
}

// TestNameOfGateWithModeAuditIsNeverAdded includes undecided Gates.
func TestNameOfGateWithModeAuditIsNeverAdded(t *testing.T) {
	everySituation(func(s situation) {
		step := verdict.Next(s.Observed, verdict.Judge(s.Observed, s.gates), s.plan)
		for _, g := range s.gates {
			if g.Audits && slices.Contains(step.Names, g.Name) && !slices.Contains(s.HeldBy, g.Name) {
				t.Errorf("%s\ngot %+v", s, step)
			}
		}
	})
}

// TestAuditPredictsHoldsOfModeEnforce compares the two for all kinds of targets.
func TestAuditPredictsHoldsOfModeEnforce(t *testing.T) {
	const day = 24 * time.Hour
	foreign := func(obj *target.Object) { obj.Object["spec"].(map[string]any)["suspend"] = true }
	objects := map[string]*target.Object{
		"free": kustomization("apps"), "held by another": kustomization("apps", heldBy("shop/b", suspension)),
		"held by itself": kustomization("apps", heldBy("shop/a", suspension)), "suspended by somebody": kustomization("apps", foreign),
		"resumed":       kustomization("apps", annotated(v1alpha1.HeldByAnnotation, "shop/b"), told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon.Add(-time.Minute))),
		"a certificate": certificate(), "one to be activated": certificate(annotated(v1alpha1.ActivateIntoAnnotation, "live")),
	}
	outcomes := map[verdict.Outcome]bool{}
	for name, obj := range objects {
		for _, options := range [][]gateOption{{}, {respecting}, {letting(80*day, false)}, {letting(80*day, true)}, {edited}, {suspended}} {
			for _, other := range []*v1alpha1.Gate{opened("b"), closed("b"), closed("b", respecting)} {
				for _, is := range []func(string, ...gateOption) *v1alpha1.Gate{opened, closed} {
					gates := governing(is("a", append(options, audits)...), other)
					got := rule(obj, gates, modern, noon).Would(gates[0], gates)
					want := rule(obj, governing(is("a", options...), other), modern, noon)
					if !reflect.DeepEqual(got.Step, want.Step) || !reflect.DeepEqual(got.Plan, want.Plan) {
						t.Errorf("%s: got  %+v\nwant %+v", name, got.Step, want.Step)
					}
					outcomes[got.Step.Outcome] = true
				}
			}
		}
	}
	if len(outcomes) < 5 {
		t.Errorf("only %v came out", outcomes)
	}
}

func TestMessagesOfGateWithModeAudit(t *testing.T) {
	g := closed("a", audits, next(time.Hour, v1alpha1.StateOpened), because(v1alpha1.OutsideOpenPeriodsReason, ""))
	gates := governing(g)
	if got, want := verdict.ExplainAudit(gates[0], noon),
		"Would be held by gate 'shop/a' until 2026-11-24T13:00:00Z: outside its open periods. The gate has mode Audit and holds nothing."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for want, gates := range map[string][]verdict.Gate{
		"Released: gate 'shop/a' has mode Audit.":                            gates,
		"Released: gate 'shop/b' is open, and gate 'shop/a' has mode Audit.": append(governing(opened("b")), gates...),
		"Released: gates 'shop/a', 'shop/c' have mode Audit.":                append(governing(closed("c", audits)), gates...),
	} {
		if got := verdict.Judge(verdict.Observed{}, gates).Released(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
