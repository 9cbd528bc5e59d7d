package verdict

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// A Gate becomes wide if it gets more than ManyMore additional targets, and then has more than ManyTimes as many as before.
const (
	ManyMore  = 25
	ManyTimes = 2
)

// Wide is an entry of spec.targets whose selector makes a Gate wide.
type Wide struct {
	// Index is the index of the entry. Matches is the number of objects that it matches.
	Index, Matches int
	// Before and After are the numbers of targets that the Gate governs.
	Before, After int
}

// Field returns the path of the entry.
func (w Wide) Field() string { return fmt.Sprintf("spec.targets[%d]", w.Index) }

// String describes the entry and its effect.
func (w Wide) String() string {
	return fmt.Sprintf("selects %d objects, and the gate governs %d targets instead of %d", w.Matches, w.After, w.Before)
}

// WideAdvice is the next step after a warning about a Wide.
const WideAdvice = "narrow the selector, or set mode: Audit first to see what the gate would hold"

// Widest returns the entry whose selector matches the most objects. many is true if it makes the Gate wide, given the number of targets
// before. Gates with mode Audit hold nothing and are never wide.
func (s Scope) Widest(g *v1alpha1.Gate, before int, objects []*unstructured.Unstructured) (w Wide, many bool) {
	w.Before = before
	matches := make([]int, len(g.Spec.Targets))
	for _, obj := range objects {
		if !s.inReach(g, obj) {
			continue
		}
		if s.Governs(g, obj) {
			w.After++
		}
		for i := range g.Spec.Targets {
			if ref := &g.Spec.Targets[i]; HasSelector(ref) && s.Names(ref, g.Namespace, obj) {
				matches[i]++
			}
		}
	}
	for i, n := range matches {
		if n > w.Matches {
			w.Index, w.Matches = i, n
		}
	}
	return w, !g.Audits() && w.Matches > ManyMore && w.After-before > ManyMore && w.After > ManyTimes*before
}

// HasSelector returns whether a reference can match several objects.
func HasSelector(ref *v1alpha1.TargetReference) bool {
	return ref.Name == v1alpha1.AnyName || ref.SpansNamespaces()
}
