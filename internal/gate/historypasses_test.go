package gate_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// A process that has restarted knows the passes from the targets, and not which of them the history has had.
func TestPassesAreInTheHistoryOnceAndInOrder(t *testing.T) {
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
