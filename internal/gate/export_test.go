package gate

import (
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// The parts of a status, for tests that examine one of them.
var (
	LastTransition = lastTransition
	WithProceed    = withProceed
	NewestFailures = newest
)

func RecordHistory(g *v1alpha1.Gate, d Decision, handled []ledger.Request, now time.Time, changed bool) {
	g.Status.History = history(g, g, d, handled, now, changed)
}

func RecordPasses(g *v1alpha1.Gate, passes []v1alpha1.HistoryEntry) {
	g.Status.History = withPasses(g.Status.History, passes)
}

func (in *Snapshot) RecordExceptions(now time.Time) {
	in.Gate.Status.Exceptions = in.exceptionRecords(now)
}
