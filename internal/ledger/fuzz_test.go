package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// apply applies what is in the annotations of a Gate, and stores the result.
func apply(g *v1alpha1.Gate, now time.Time) []ledger.Request {
	l := ledger.Read(g)
	outcomes := l.Apply(ledger.Stamped, now)
	s := l.Status()
	g.Status.Requests, g.Status.Memory.HandledRequests, g.Status.Memory.LastHandledLine = s.Requests, s.Handled, s.LastHandledLine
	return outcomes
}

// FuzzApply checks what holds after any annotations: the stored requests are bounded, a Gate is not open and closed by requests at once, and
// nothing is new if the same annotations are applied again.
func FuzzApply(f *testing.F) {
	f.Add("2026-11-23T12:00:00Z", "", "2026-11-23T11:59:00Z/1h", "", "", uint16(60), uint8(0))
	f.Add("2026-11-23T13:00:00Z", "2026-11-23T12:00:00Z/0s", "GateReceiver ops/ci", "1\tclose\tannotation\t2026-11-23T12:00:00Z\tmia\t", "", uint16(7200), uint8(2))
	f.Add("2026-11-23T12:00:00Z/2h", "2026-11-23T12:00:00Z", "mia", "x", "request=2026-11-23T12:00:00.000000Z,uid= jo", uint16(1), uint8(1))
	f.Fuzz(func(t *testing.T, open, shut, by, lines, approved string, seconds uint16, required uint8) {
		now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
		g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Window: v1alpha1.NewDuration(4 * time.Hour), Approvals: &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: int32(required % 3)}}}}
		for step, value := range []string{open, shut, open + shut, open} {
			g.Annotations = map[string]string{
				v1alpha1.OpenRequestedAtAnnotation: value, v1alpha1.OpenRequestedByAnnotation: by, v1alpha1.OpenReceivedAnnotation: open,
				v1alpha1.CloseRequestedAtAnnotation: shut, v1alpha1.CloseRequestedByAnnotation: by,
				v1alpha1.UnhandledAnnotation: lines, v1alpha1.ApproveRequestedByAnnotation: approved,
			}
			now = now.Add(time.Duration(step) * time.Duration(seconds) * time.Second)
			before := g.DeepCopy()
			ledger.Read(g).Apply(ledger.Stamped, now)
			if !reflect.DeepEqual(before, g) {
				t.Fatalf("Apply changed the Gate: %+v", g.Status)
			}
			apply(g, now)
			if n := len(g.Status.Requests); n > 64 {
				t.Fatalf("%d requests are stored", n)
			}
			inForce, _ := ledger.RequestsAt(g, now)
			for _, r := range inForce {
				if r.Action != inForce[0].Action {
					t.Fatalf("opens and closes are in force at once: %+v", inForce)
				}
			}
			ledger.RemoveLines(g, before)
			if again := apply(g, now); len(again) > 0 {
				t.Fatalf("new again: %v", again)
			}
		}
	})
}
