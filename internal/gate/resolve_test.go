package gate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func following(g *v1alpha1.Gate) *v1alpha1.Gate {
	g.Spec.DependsOn = []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "db"}}
	return g
}

func dependency(ready bool) []v1alpha1.DependencyStatus {
	return []v1alpha1.DependencyStatus{{Kind: "Kustomization", Name: "db", Ready: ready, Since: metav1.NewTime(noon)}}
}

// Each row is what Resolve needs before its decision is final, or the decision.
func TestResolveReadsOnlyNeededInputs(t *testing.T) {
	lunch := windows(weekly("lunch", "12:00", "13:00"))
	server := func(at time.Time, err error) *gate.ServerTime {
		return &gate.ServerTime{RequestedAt: noon, ReceivedAt: noon, Reported: at, Err: err}
	}
	for name, tc := range map[string]struct {
		gate  *v1alpha1.Gate
		has   gate.Observed
		needs gate.Need
		state v1alpha1.State
	}{
		"a closed gate":                                  {closed(), gate.Observed{TwoClocks: true}, gate.NeedsNothing, v1alpha1.StateClosed},
		"a closed gate with dependencies":                {following(closed()), gate.Observed{TwoClocks: true}, gate.NeedsNothing, v1alpha1.StateClosed},
		"an open gate, by one clock":                     {opened(), gate.Observed{}, gate.NeedsNothing, v1alpha1.StateOpened},
		"an open gate, by two clocks":                    {opened(), gate.Observed{TwoClocks: true}, gate.NeedsServerTime, ""},
		"an open gate with dependencies":                 {following(opened()), gate.Observed{TwoClocks: true}, gate.NeedsDependencies, ""},
		"dependencies from the cache":                    {following(opened()), gate.Observed{TwoClocks: true, Dependencies: dependency(true), Cached: true}, gate.NeedsCurrentDependencies, ""},
		"dependencies from the cache that are not ready": {following(opened()), gate.Observed{TwoClocks: true, Dependencies: dependency(false), Cached: true}, gate.NeedsNothing, v1alpha1.StateClosed},
		"ready dependencies":                             {following(opened()), gate.Observed{TwoClocks: true, Dependencies: dependency(true)}, gate.NeedsServerTime, ""},
		"the same time on both clocks":                   {closed(lunch), gate.Observed{TwoClocks: true, Server: server(noon, nil)}, gate.NeedsNothing, v1alpha1.StateOpened},
		"an earlier time on the other clock":             {closed(lunch), gate.Observed{TwoClocks: true, Server: server(noon.Add(-time.Minute), nil)}, gate.NeedsNothing, v1alpha1.StateClosed},
		"an unknown time on the other clock":             {closed(lunch), gate.Observed{TwoClocks: true, Server: server(time.Time{}, errors.New("timeout"))}, gate.NeedsNothing, v1alpha1.StateClosed},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.gate.DeepCopy()
			r := gate.NewSnapshot(tc.gate, nil).Resolve(tc.has, noon)
			if r.Needs != tc.needs || tc.needs == gate.NeedsNothing && r.State != tc.state {
				t.Errorf("needs %d, %s: %s", r.Needs, r.State, r.Message)
			}
			if tc.needs == gate.NeedsNothing {
				r.Status(&gate.Progress{Settled: true})
			}
			if !equality.Semantic.DeepEqual(before, tc.gate) {
				t.Error("the Gate was changed")
			}
		})
	}
}

func TestResolveReturnsClosingWithDependencies(t *testing.T) {
	g := following(closed(windows(weekly("lunch", "11:00", "13:00"))))
	if r := gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, noon); r.Needs != gate.NeedsDependencies || !r.Closing.Equal(noon.Add(time.Hour)) {
		t.Errorf("needs %d until %s", r.Needs, r.Closing)
	}
}

// The state did not change, so that nothing is announced. The history has what was missed.
func TestMissedTransitionIsInHistoryOnly(t *testing.T) {
	g := closed(windows(weekly("lunch", "12:00", "13:00")))
	g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, noon.Add(-time.Hour)).Status(&gate.Progress{Settled: true})
	r := gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, noon.Add(2*time.Hour))
	after := r.Status(nil)
	if r.Changed || len(after.History) != 2 || !after.LastTransition.At.Time.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("changed %t, history %+v, last transition %s", r.Changed, after.History, after.LastTransition.At)
	}
}

// The lists of a status must not be shared between the status before and the one after, or a later write changes both.
func TestStatusIsValue(t *testing.T) {
	g := opened()
	annotate(g, v1alpha1.RequestClose, stamp(noon))
	g.Annotations[v1alpha1.ProceedRequestedAtAnnotation] = stamp(noon)
	g.Spec.Release = &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{{Name: "canary"}}}
	g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, noon.Add(-time.Hour)).Status(&gate.Progress{Settled: true})
	for _, now := range []time.Time{noon, noon.Add(time.Hour)} {
		before := g.DeepCopy()
		r := gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, now)
		decided := r.Status(nil)
		kept := *decided.DeepCopy()
		after := r.Status(&gate.Progress{
			Stop: gate.Stop{Reason: "WaveFailed", Message: "m"}, Err: errors.New("failed"), Release: &v1alpha1.ReleaseStatus{},
			Passes: []v1alpha1.HistoryEntry{{Target: "a/b", At: metav1.NewTime(now)}},
		})
		if !equality.Semantic.DeepEqual(before, g) || !equality.Semantic.DeepEqual(kept, decided) {
			t.Error("a status was changed after it was returned")
		}
		if equality.Semantic.DeepEqual(after, decided) {
			t.Error("the progress is missing")
		}
		g.Status = after
	}
}

// A pass may compute a condition several times. Its time changes only if the result differs from the condition before.
func TestConditionKeepsTransitionTime(t *testing.T) {
	g := closed()
	ready := func(p *gate.Progress, now time.Time) string {
		g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, now).Status(p)
		for _, c := range g.Status.Conditions {
			if c.Type == "Ready" {
				return c.Message + c.LastTransitionTime.UTC().Format(" 15:04")
			}
		}
		return ""
	}
	settled := &gate.Progress{Settled: true}
	if got := ready(settled, noon); got != "0 of 0 targets held 12:00" {
		t.Error(got)
	}
	if got := ready(settled, noon.Add(time.Hour)); got != "0 of 0 targets held 12:00" {
		t.Error(got)
	}
	g.Generation++
	if got := ready(settled, noon.Add(2*time.Hour)); got != "0 of 0 targets held 12:00" {
		t.Error(got)
	}
	if got := ready(&gate.Progress{Settled: true, Unmatched: "nothing"}, noon.Add(3*time.Hour)); !strings.HasSuffix(got, "15:00") {
		t.Error(got)
	}
}
