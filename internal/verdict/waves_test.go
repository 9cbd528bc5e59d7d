package verdict_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestWaveOfObject(t *testing.T) {
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{
		{Name: "one", MatchLabels: map[string]string{"wave": "1"}},
		{Name: "two", MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "wave", Operator: metav1.LabelSelectorOpIn, Values: []string{"1", "2"}}}},
		{Name: "invalid", MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "wave", Operator: "Around"}}},
	}}}}
	for wave, want := range map[string]struct {
		matches uint16
		name    string
	}{"1": {3, "two"}, "2": {2, "two"}, "3": {0, "the rest"}} {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetLabels(map[string]string{"wave": wave})
		if got := verdict.WavesOf(g, obj); got != want.matches {
			t.Errorf("wave %s: matches %b, want %b", wave, got, want.matches)
		}
		if got := verdict.WaveOf(g, obj); got != want.name {
			t.Errorf("wave %s: %s, want %s", wave, got, want.name)
		}
	}
}

func TestReleaseEndsWithItsOpening(t *testing.T) {
	at, before := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(900, 0))
	opened := []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue}}
	policy := &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{{Name: "one"}}}
	for name, tc := range map[string]struct {
		policy     *v1alpha1.ReleasePolicy
		conditions []metav1.Condition
		waves      *v1alpha1.WavesStatus
		want       bool
	}{
		"it has just opened":             {policy, opened, nil, true},
		"it releases a wave":             {policy, opened, &v1alpha1.WavesStatus{OpenedAt: &at, Current: "one"}, true},
		"it has released all":            {policy, opened, &v1alpha1.WavesStatus{OpenedAt: &at}, false},
		"it had when it opened before":   {policy, opened, &v1alpha1.WavesStatus{OpenedAt: &before}, true},
		"it had released all and closed": {policy, opened, &v1alpha1.WavesStatus{}, true},
		"it is closed":                   {policy, nil, &v1alpha1.WavesStatus{OpenedAt: &at, Current: "one"}, false},
		"it has a pace and no waves":     {&v1alpha1.ReleasePolicy{PerMinute: 1}, opened, nil, false},
		"it releases everything at once": {nil, opened, nil, false},
	} {
		g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Release: tc.policy}}
		g.Status = v1alpha1.GateStatus{Conditions: tc.conditions, LastTransition: &v1alpha1.Transition{At: at}, Release: &v1alpha1.ReleaseStatus{Waves: tc.waves}}
		if got := gate.ReleasesInWaves(g); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
