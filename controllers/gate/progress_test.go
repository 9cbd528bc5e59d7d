package gate

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// If many Gates change at the same time, twenty per second write their progress, in turn. A Gate whose targets are settled writes it at
// once.
func TestManyGatesReportProgressInTurn(t *testing.T) {
	for n, interval := range map[int]time.Duration{1: time.Second, 39: time.Second, 40: 2 * time.Second, 200: 10 * time.Second} {
		r := &Reconciler{State: &State{}, Summary: &summary.Summary{}}
		gates := make([]*v1alpha1.Gate, n)
		for i := range gates {
			g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}}
			r.State.add(g, start)
			r.Summary.MarkPending(summary.KeyFor(g), []target.Key{{NamespacedName: client.ObjectKeyFromObject(g)}})
			gates[i] = g
		}
		pending := r.Summary.Sums(summary.KeyFor(gates[0]))
		for second := range 21 {
			now := start.Add(time.Duration(second) * time.Second)
			for _, g := range gates {
				sinceLast := time.Duration(second) * time.Second % interval
				want := time.Time{}
				if sinceLast > 0 {
					want = now.Add(interval - sinceLast)
				}
				if at := r.mayWrite(g, pending, now); !at.Equal(want) {
					t.Fatalf("of %d gates %s is told in second %d to write at %s, want %s", n, g.Name, second, at, want)
				}
			}
		}
		if at := r.mayWrite(gates[0], summary.Sums{Total: 1}, start.Add(21*time.Second)); !at.IsZero() {
			t.Errorf("a gate has its targets as it wants them, and tells it at %s", at)
		}
	}
}
