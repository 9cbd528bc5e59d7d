package checker

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// governs returns whether a Gate governs a target, by spec.targets or by annotation.
func governs(g *gate, t *unstructured.Unstructured) bool {
	if slices.Contains(names(t, gatesAnnotation), g.key()) {
		return true
	}
	for _, ref := range g.Spec.Targets {
		namespace := ref.Namespace
		if namespace == "" {
			namespace = g.Namespace
		}
		if ref.Kind == t.GetKind() && namespace == t.GetNamespace() && (ref.Name == "*" || ref.Name == t.GetName()) &&
			labels.SelectorFromSet(labels.Set(ref.MatchLabels)).Matches(labels.Set(t.GetLabels())) {
			return true
		}
	}
	return false
}

// defaultMargin is the default safety margin.
const defaultMargin = 24 * time.Hour

// closed returns the Gates that must hold a target, and those that may or may not: suspended Gates that govern or still hold it.
func (c *check) closed(t *unstructured.Unstructured) (must, may []string) {
	for _, name := range names(t, gatesAnnotation) {
		if c.gates[name] == nil {
			must = append(must, name)
		}
	}
	for name, g := range c.gates {
		state, _ := g.decide(c.now)
		switch {
		case g.Spec.Suspend:
			if governs(g, t) || slices.Contains(names(t, heldByAnnotation), name) {
				may = append(may, name)
			}
		case governs(g, t) && state == v1alpha1.StateClosed:
			must = append(must, name)
		}
	}
	slices.Sort(must)
	return must, may
}

// target checks that a target is held if and only if it must be.
func (c *check) target(t *unstructured.Unstructured) {
	fail := func(format string, args ...any) { c.fail("%s: %s", name(t), fmt.Sprintf(format, args...)) }
	must, may := c.closed(t)
	heldBy := names(t, heldByAnnotation)
	if t.GetKind() == certificateKind {
		c.certificate(t, must, may, fail)
		return
	}
	held, byOthers := ours(t), suspended(t) && !ours(t)
	approved := condition(t, "Approved")
	switch {
	case byOthers && len(heldBy) > 0:
		fail("it is suspended by %q, but its annotation names gates %q", claims(t), heldBy)
	case byOthers && len(claims(t)) == 0:
		fail("it is suspended, but no client did that")
	case held && len(heldBy) == 0:
		fail("it is held, but its annotation names no gate")
	case held && !within(heldBy, must, may):
		fail("it is held by %q, want %q, perhaps %q", heldBy, must, may)
	case !held && !byOthers && len(must) > 0 && !c.respected(t, must):
		fail("it is not held, gates %q are closed; its annotation names %q, it is suspended by %q", must, heldBy, claims(t))
	case !held && !byOthers && !within(heldBy, nil, slices.Concat(must, may)):
		fail("its annotation names gates %q, but only %q are closed", heldBy, must)
	}
	if refused := approved != nil && approved.Status == metav1.ConditionFalse; refused != held {
		fail("held is %v, and Approved is %v", held, approved)
	}
}

// within returns whether a list has all required entries and no forbidden ones.
func within(list, must, may []string) bool {
	for _, item := range must {
		if !slices.Contains(list, item) {
			return false
		}
	}
	return !slices.ContainsFunc(list, func(item string) bool { return !slices.Contains(must, item) && !slices.Contains(may, item) })
}

// respected returns whether a client resumed a target, and all Gates that would hold it respect that.
func (c *check) respected(t *unstructured.Unstructured, must []string) bool {
	_, resumed := c.history.resumedAt(t.GetUID())
	return resumed && !slices.ContainsFunc(must, func(name string) bool {
		g := c.gates[name]
		return g == nil || g.Spec.Mode != v1alpha1.ModeLenient
	})
}

// renewal returns the deadline of the renewal of a certificate, truncated to the minute.
func renewal(t *unstructured.Unstructured, margin time.Duration) (deadline time.Time, issued bool) {
	at := func(field string) time.Time {
		value, _, _ := unstructured.NestedString(t.Object, "status", field)
		parsed, _ := time.Parse(time.RFC3339, value)
		return parsed
	}
	from, until := at("notBefore"), at("notAfter")
	if t.GetKind() != certificateKind || from.IsZero() || until.IsZero() {
		return time.Time{}, false
	}
	return until.Add(-min(margin, until.Sub(from)/6)).Truncate(time.Minute), true
}

// certificate checks that a Certificate is held if that is safe, and never past its margin.
func (c *check) certificate(t *unstructured.Unstructured, must, may []string, fail func(string, ...any)) {
	margin, strict := defaultMargin, false
	held, heldBy := ours(t), names(t, heldByAnnotation)
	for _, name := range slices.Concat(must, heldBy) {
		if g := c.gates[name]; g != nil {
			strict = strict || g.Spec.Certificates != nil && g.Spec.Certificates.Strict
			margin = min(margin, marginOf(&g.Gate))
		}
	}
	_, set, _ := unstructured.NestedFieldNoCopy(t.Object, "spec", "renewal")
	deadline, issued := renewal(t, margin)
	ready := condition(t, "Ready")
	late := issued && !c.now.Before(deadline)
	approved := condition(t, "Approved")
	for _, at := range deferredUntil(t) {
		if held && issued && !strict && at.After(deadline) {
			fail("its renewal is held until %s, the deadline is %s", at, deadline)
		}
	}
	switch {
	case len(must) == 0 && len(may) > 0:
	case late && !strict && held:
		fail("it is held past its margin, the deadline was %s", deadline)
	case len(must) == 0 && held:
		fail("its renewal is held, and no gate is closed")
	case len(must) == 0 && len(heldBy) > 0:
		fail("its annotation names gates %q, but none is closed", heldBy)
	case held && !within(heldBy, must, may):
		fail("it is held by %q, want %q, perhaps %q", heldBy, must, may)
	case len(must) > 0 && len(may) == 0 && issued && !late && !set && ready != nil && ready.Status == metav1.ConditionTrue:
		fail("its renewal is not held, gates %q are closed, the deadline is %s", must, deadline)
	case held && (approved == nil || approved.Status != metav1.ConditionFalse):
		fail("it is held, and Approved is %v", approved)
	case !held && approved != nil && approved.Status == metav1.ConditionFalse:
		fail("it is not held, and Approved is %v", approved)
	}
}
