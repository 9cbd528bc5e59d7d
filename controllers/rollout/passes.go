package rollout

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Passes stores the last passes of each Gate, for the history of the Gate. After a restart, they are restored from the annotations of the
// targets. The zero value is ready for use.
type Passes struct {
	mu    sync.Mutex
	gates map[types.UID]map[passKey]verdict.Pass
}

// passKey identifies a pass of a Gate.
type passKey struct {
	target target.Key
	value  string
}

// Record records a pass of a target for a Gate. It returns false if the pass is recorded already and unchanged, or if it is too old for
// the history.
func (p *Passes) Record(gate types.UID, key target.Key, pass verdict.Pass) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := passKey{key, pass.Value}
	if p.gates[gate][of] == pass {
		return false
	}
	if p.gates == nil {
		p.gates = map[types.UID]map[passKey]verdict.Pass{}
	}
	if p.gates[gate] == nil {
		p.gates[gate] = map[passKey]verdict.Pass{}
	}
	p.gates[gate][of] = pass
	if len(p.gates[gate]) > v1alpha1.MaxHistory/2 {
		oldest := of
		for k, other := range p.gates[gate] {
			if other.Last().Before(p.gates[gate][oldest].Last()) {
				oldest = k
			}
		}
		delete(p.gates[gate], oldest)
	}
	return p.gates[gate][of] == pass
}

// Forget evicts a Gate.
func (p *Passes) Forget(gate types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gates, gate)
}

// Entries returns the history entries about the passes of a Gate, oldest first.
func (p *Passes) Entries(gate types.UID) []v1alpha1.HistoryEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	var entries []v1alpha1.HistoryEntry
	for of, pass := range p.gates[gate] {
		entries = append(entries, historyEntries(of.target, pass)...)
	}
	slices.SortFunc(entries, func(a, b v1alpha1.HistoryEntry) int {
		return cmp.Or(a.At.Compare(b.At.Time), strings.Compare(a.Target, b.Target), -strings.Compare(a.Reason, b.Reason))
	})
	return entries
}

// historyEntries returns the history entries about one pass: one for the beginning, and one when it ended or was refused.
func historyEntries(key target.Key, pass verdict.Pass) (entries []v1alpha1.HistoryEntry) {
	e := v1alpha1.HistoryEntry{
		Target: key.String(), RequestedBy: pass.By, Message: pass.Reason, RequestedAt: pass.RequestedAt(),
	}
	if !pass.Since.IsZero() {
		begins := e
		begins.At, begins.Until, begins.Reason = metav1.NewTime(pass.Since), &metav1.Time{Time: pass.Until}, v1alpha1.PassGrantedReason
		entries = append(entries, begins)
	}
	if !pass.Ended.IsZero() {
		e.At, e.Reason, e.Outcome = metav1.NewTime(pass.Ended), v1alpha1.PassEndedReason, pass.Outcome
		if pass.State == verdict.PassRefused {
			e.Reason, e.Refused = v1alpha1.PassRefusedReason, pass.Message
		}
		entries = append(entries, e)
	}
	return entries
}
