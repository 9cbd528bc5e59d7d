package verdict_test

import (
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestPassMovesWithItsRequestRecordOrProgress(t *testing.T) {
	resumed := heldBy("shop/a", map[string]any{"suspend": false})
	ended := before
	ended.State, ended.Ended = verdict.PassEnded, noon
	as := func(p verdict.Pass, edits ...edit) *target.Object {
		return kustomization("apps", append([]edit{requesting(before.Value, "*"), passing(p), resumed, reports("old", "v1", "True", 7)}, edits...)...)
	}
	for name, tc := range map[string]struct {
		after            *target.Object
		moves, continues bool
	}{
		"unchanged":                {as(before), false, true},
		"requested again":          {as(before, requesting("2026-11-24T12:00:00Z", "*")), true, true},
		"requested for a Gate":     {as(before, requesting(before.Value, "shop/a")), true, true},
		"ended":                    {as(ended), true, false},
		"without a record":         {as(verdict.Pass{}), true, false},
		"Flux handled a request":   {as(before, reports("new", "v1", "True", 7)), true, true},
		"Flux has failed":          {as(before, reports("old", "v1", "False", 7)), true, true},
		"Flux reported its status": {as(before, annotated("x", "y")), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if moves, continues := verdict.PassMoves(as(before), tc.after); moves != tc.moves || continues != tc.continues {
				t.Errorf("moves %t, continues %t; want %t, %t", moves, continues, tc.moves, tc.continues)
			}
		})
	}
}

func TestPassRecordStaysAsLongAsItsRequest(t *testing.T) {
	ended := before
	ended.State, ended.Ended, ended.Gates = verdict.PassEnded, noon, "shop/a"
	for request, want := range map[string]verdict.PassState{before.Value: verdict.PassEnded, "2026-11-24T11:00:00Z": ""} {
		obj := kustomization("apps", requesting(request, "shop/a"), passing(ended), heldBy("shop/a", suspension))
		if step := rule(obj, governing(opened("a")), handles, noon).Step; !step.Write || step.Pass.State != want {
			t.Errorf("request %s: got the record %q, want %q: %+v", request, step.Pass.State, want, step)
		}
	}
}

func TestPassEndsIfItsRecordOrItsGatesAreInvalid(t *testing.T) {
	const missing, denied = verdict.Missing, verdict.Denied
	gate := func(effect verdict.Effect) []verdict.Gate {
		return []verdict.Gate{{Name: "shop/a", Effect: effect, Governs: true}}
	}
	for name, tc := range map[string]struct {
		since, lasts time.Duration
		gates        []verdict.Gate
		want         string
	}{
		"valid":                    {0, time.Hour, governing(closed("a")), ""},
		"longer than the maximum":  {0, time.Hour + time.Second, governing(closed("a")), verdict.PassInterrupted},
		"starts in the future":     {time.Hour, time.Minute, governing(closed("a")), verdict.PassInterrupted},
		"the Gate is missing":      {0, time.Hour, gate(missing), verdict.PassClosed},
		"the Gate must not be set": {0, time.Hour, gate(denied), verdict.PassClosed},
		"the Gate closed since":    {0, time.Hour, governing(closed("a", since(time.Second))), verdict.PassClosed},
		"the Gate closed before":   {0, time.Hour, governing(closed("a", since(0))), ""},
	} {
		t.Run(name, func(t *testing.T) {
			pass := before
			pass.Since, pass.Gates = noon.Add(tc.since), "shop/a"
			pass.Until, pass.Was, pass.Is = pass.Since.Add(tc.lasts), target.Progress{"old", "v1", "7"}, target.Progress{"old", "v1", "7"}
			obj := kustomization("apps", passing(pass), heldBy("shop/a", map[string]any{"suspend": false}),
				annotated(fluxmeta.ReconcileRequestAnnotation, pass.Since.Format(time.RFC3339Nano)), reports("old", "v1", "True", 7))
			if step := rule(obj, tc.gates, handles, noon.Add(time.Second)).Step; step.Pass.Outcome != tc.want || (step.Outcome == verdict.Passing) != (tc.want == "") {
				t.Errorf("got %q, want %q: %+v", step.Pass.Outcome, tc.want, step)
			}
		})
	}
}

func TestSelectedNamespacesNeedTheirLabels(t *testing.T) {
	ref := v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	labels := func(string) map[string]string { return map[string]string{"team": "a"} }
	others := func(string) map[string]string { return map[string]string{"team": "b"} }
	for name, tc := range map[string]struct {
		scope         verdict.Scope
		want, inReach bool
	}{
		"labels match":              {verdict.Scope{Labels: labels}, true, true},
		"labels differ":             {verdict.Scope{Labels: others}, false, false},
		"labels are unknown":        {verdict.Scope{}, false, false},
		"the namespace of Gates":    {verdict.Scope{Labels: labels, Own: "shop"}, false, false},
		"out of reach of the Gate":  {verdict.Scope{Labels: labels, Reaches: func(string, string) bool { return false }}, true, false},
		"in reach, but not matched": {verdict.Scope{Labels: others, Reaches: func(string, string) bool { return true }}, false, false},
	} {
		g := closed("a")
		g.Spec.Targets = []v1alpha1.TargetReference{ref}
		obj := &kustomization("apps").Unstructured
		if got, inReach := tc.scope.Governs(g, obj), tc.scope.GovernsInReach(g, obj); got != tc.want || inReach != tc.inReach {
			t.Errorf("%s: got %t, in reach %t; want %t, %t", name, got, inReach, tc.want, tc.inReach)
		}
	}
}
