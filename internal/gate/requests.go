package gate

import (
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// ApplyRequests handles the new requests and approvals in the annotations of a Gate, and stores the result in its status. It returns the
// outcomes of ledger.Ledger.Apply.
func ApplyRequests(g *v1alpha1.Gate, stamps ledger.Stamps, now time.Time) []ledger.Request {
	l := ledger.Read(g)
	outcomes := l.Apply(stamps, now)
	s := l.Status()
	g.Status.Requests, g.Status.Memory.HandledRequests, g.Status.Memory.LastHandledLine = s.Requests, s.Handled, s.LastHandledLine
	return outcomes
}
