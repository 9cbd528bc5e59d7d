package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// A process that has restarted knows the passes from the targets, and not which of them the history has had.
func TestPassesAreInHistoryOnceAndInOrder(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	g := closed()
	g.Status.History = []v1alpha1.HistoryEntry{{At: at(10), Reason: "newer"}, {At: at(0), Reason: "closed"}}
	passes := []v1alpha1.HistoryEntry{
		{At: at(-1), Target: "Kustomization shop/old", Reason: v1alpha1.PassGrantedReason},
		{At: at(5), Target: "Kustomization shop/web", Reason: v1alpha1.PassGrantedReason},
		{At: metav1.NewTime(at(6).Add(300 * time.Millisecond)), Target: "Kustomization shop/web", Reason: v1alpha1.PassEndedReason},
		{At: at(11), Target: "Kustomization shop/web", Reason: v1alpha1.PassGrantedReason},
	}
	for range 2 {
		gate.RecordPasses(g, passes)
		var got []int
		for _, e := range g.Status.History {
			got = append(got, int(e.At.Sub(noon)/time.Minute))
		}
		if want := []int{11, 10, 6, 5, 0}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	fresh := closed()
	if gate.RecordPasses(fresh, passes); len(fresh.Status.History) > 0 {
		t.Errorf("a gate that has decided nothing has %v", fresh.Status.History)
	}
}

// However many passes there are, the Gate knows when it opened and closed. A pass without room is not noted again and again.
func TestPassesUseHalfOfHistoryAtMost(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	for name, tc := range map[string]struct {
		states, passes         int
		reason                 string
		wantStates, wantPasses int
	}{
		"few of both":              {5, 5, "", 5, 5},
		"many passes":              {1, 200, "", 1, 25},
		"many of both":             {200, 200, "", 25, 25},
		"many changes":             {200, 5, "", 45, 5},
		"long reasons":             {10, 30, strings.Repeat("x", 492), 10, 16},
		"long reasons, few passes": {10, 10, strings.Repeat("x", 492), 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			var passes []v1alpha1.HistoryEntry
			for i := range tc.passes { // after all that the Gate has done
				passes = append(passes, v1alpha1.HistoryEntry{At: at(1000 + i), Target: fmt.Sprintf("Kustomization/%06d", i), Reason: v1alpha1.PassGrantedReason, Message: tc.reason})
			}
			for i := range tc.states {
				gate.RecordHistory(g, gate.Decision{State: v1alpha1.StateOpened, Reason: "Default"}, nil, at(i).Time, true)
			}
			gate.RecordPasses(g, passes)
			history := slices.Clone(g.Status.History)
			states, kept := 0, []string(nil)
			for _, e := range history {
				if e.Target == "" {
					states++
				} else {
					kept = append(kept, e.Target)
				}
			}
			if states != tc.wantStates || len(kept) != tc.wantPasses || kept[0] != passes[len(passes)-1].Target {
				t.Errorf("%d changes, %d passes, the newest %s", states, len(kept), kept[0])
			}
			if gate.RecordPasses(g, passes); !equality.Semantic.DeepEqual(g.Status.History, history) {
				t.Error("it is another one each time")
			}
			gate.RecordHistory(g, gate.Decision{State: v1alpha1.StateClosed, Reason: "Default"}, nil, at(5000).Time, true)
			if len(g.Status.History) < min(len(history)+1, v1alpha1.MaxHistory) || g.Status.History[0].State != v1alpha1.StateClosed {
				t.Errorf("%d entries, the newest %+v", len(g.Status.History), g.Status.History[0])
			}
		})
	}
}

// Passes of the same second are found in any order, and each reconciliation gives the same history.
func TestPassesOfSameSecondWithoutSpaceStayDropped(t *testing.T) {
	g := closed()
	g.Status.History = []v1alpha1.HistoryEntry{{At: metav1.NewTime(noon.Add(-time.Minute)), Reason: "closed"}}
	var passes []v1alpha1.HistoryEntry
	for i := range 28 {
		passes = append(passes, v1alpha1.HistoryEntry{At: metav1.NewTime(noon), Target: fmt.Sprintf("Kustomization shop/app-%02d", i), Reason: v1alpha1.PassGrantedReason})
	}
	passes = append(passes, v1alpha1.HistoryEntry{At: metav1.NewTime(noon), Target: "Kustomization shop/app-00", Reason: v1alpha1.PassEndedReason})
	gate.RecordPasses(g, passes)
	first := slices.Clone(g.Status.History)
	if len(first) != v1alpha1.MaxHistory/2+1 || first[len(first)-1].Reason != "closed" {
		t.Errorf("%d entries, the last is %+v", len(first), first[len(first)-1])
	}
	for range 3 {
		slices.Reverse(passes)
		if gate.RecordPasses(g, passes); !equality.Semantic.DeepEqual(g.Status.History, first) {
			t.Errorf("it has changed from %+v to %+v", first, g.Status.History)
		}
	}
}
