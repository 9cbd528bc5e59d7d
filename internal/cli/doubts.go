package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// approved returns a Gate that asks for no approvals: manifests have none.
func approved(g *v1alpha1.Gate) *v1alpha1.Gate {
	g = g.DeepCopy()
	g.Spec.Exceptions = nil
	return g
}

// doubts returns what a cluster may see otherwise than the preview.
func (l *loader) doubts(from time.Time) (doubts []fault) {
	for _, g := range l.gates {
		if n := len(g.Spec.Watch); n > 0 {
			doubts = append(doubts, l.doubt(v1alpha1.GateKind, g.Namespace, g.Name, "spec.watch",
				fmt.Sprintf("the gate is closed while an object that it watches is not ready, the preview takes all %d for ready", n)))
		}
		if g.Spec.Exceptions == nil || g.Spec.Exceptions.Approvals == 0 {
			continue
		}
		if slices.ContainsFunc(l.exceptions, func(e *v1alpha1.GateException) bool { return gate.IsOf(g, e) && !e.ExpiredBy(from) }) {
			doubts = append(doubts, l.doubt(v1alpha1.GateKind, g.Namespace, g.Name, "spec.exceptions.approvals",
				fmt.Sprintf("the gate asks for %d approvals, the preview takes its exceptions for approved", g.Spec.Exceptions.Approvals)))
		}
	}
	for _, e := range l.exceptions {
		i := slices.IndexFunc(l.gates, func(g *v1alpha1.Gate) bool { return gate.IsOf(g, e) })
		if i < 0 {
			doubts = append(doubts, l.doubt(v1alpha1.GateExceptionKind, e.Namespace, e.Name, "spec.gateRef.name",
				fmt.Sprintf("gate '%s/%s' is in none of the files", e.Namespace, e.Spec.GateRef.Name)))
			continue
		}
		for _, winner := range gate.Overlapping(e, approved(l.gates[i]), l.exceptions, from) {
			why := "which is newer and wins"
			if winner.CreationTimestamp.Equal(&e.CreationTimestamp) {
				why = "which is first by name and wins here, in a cluster the one that is created later does,"
			}
			doubts = append(doubts, l.doubt(v1alpha1.GateExceptionKind, e.Namespace, e.Name, "",
				fmt.Sprintf("overlaps exception '%s', %s from %s until %s", winner.Name, why,
					winner.Spec.ValidFrom.UTC().Format(time.RFC3339), winner.Spec.ValidUntil.UTC().Format(time.RFC3339))))
		}
	}
	return doubts
}

func (l *loader) doubt(kind, namespace, name, field, cause string) fault {
	object := namespace + "/" + name
	return fault{file: l.seen[key{kind, object}], object: object, field: field, cause: cause}
}
