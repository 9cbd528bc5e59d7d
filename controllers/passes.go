package controllers

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Passes has the last passes of each Gate, for its history. The notes on the targets bring them back after a restart. The zero
// value is ready for use.
type Passes struct {
	mu    sync.Mutex
	gates map[tally.Gate]map[passKey]verdict.Pass
}

// passKey identifies a pass of a Gate.
type passKey struct {
	target target.Key
	value  string
}

// note takes note of a pass of a target, and returns whether that is new for a Gate.
func (p *Passes) note(g tally.Gate, key target.Key, pass verdict.Pass) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := passKey{key, pass.Value}
	if p.gates[g][of] == pass {
		return false
	}
	if p.gates == nil {
		p.gates = map[tally.Gate]map[passKey]verdict.Pass{}
	}
	if p.gates[g] == nil {
		p.gates[g] = map[passKey]verdict.Pass{}
	}
	p.gates[g][of] = pass
	if len(p.gates[g]) > v1alpha1.MaxHistory/2 {
		oldest := of
		for k, other := range p.gates[g] {
			if other.Last().Before(p.gates[g][oldest].Last()) {
				oldest = k
			}
		}
		delete(p.gates[g], oldest)
	}
	return true
}

// forget forgets a Gate that is gone.
func (p *Passes) forget(g tally.Gate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gates, g)
}

// entries returns what the history of a Gate is to have of passes, the oldest first.
func (p *Passes) entries(g tally.Gate) []v1alpha1.HistoryEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	var entries []v1alpha1.HistoryEntry
	for of, pass := range p.gates[g] {
		entries = append(entries, entriesOf(of.target, pass)...)
	}
	slices.SortFunc(entries, func(a, b v1alpha1.HistoryEntry) int {
		return cmp.Or(a.At.Compare(b.At.Time), strings.Compare(a.Target, b.Target), -strings.Compare(a.Reason, b.Reason))
	})
	return entries
}

// entriesOf returns the entries of one pass: that it began, and that it ended or was refused.
func entriesOf(key target.Key, pass verdict.Pass) (entries []v1alpha1.HistoryEntry) {
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

// refusals are texts that were told of targets. The zero value is ready for use.
type refusals struct {
	mu   sync.Mutex
	told map[target.Key]string
}

// isNew notes a text, and returns whether it is another one than before.
func (r *refusals) isNew(key target.Key, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told == nil {
		r.told = map[target.Key]string{}
	}
	before, known := r.told[key]
	r.told[key] = text
	return !known || before != text
}

func (r *refusals) forget(key target.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.told, key)
}
