package verdict_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// situation is a target under two Gates, of all that can be.
type situation struct {
	verdict.Observed
	gates []verdict.Gate
	plan  target.Plan
}

func (s situation) String() string {
	text := fmt.Sprintf("state %d, held by %v, told %s, exempt %d", s.State, s.HeldBy, s.ReportedAt.Sub(noon), s.plan.Exempt)
	for _, g := range s.gates {
		text += fmt.Sprintf("; %s says %d, governs %t, respects %t", g.Name, g.Effect, g.Governs, g.Object != nil && g.Object.Spec.Mode == v1alpha1.ModeLenient)
	}
	return text
}

// everyGate returns what a Gate can be for a target, nil if it has nothing to do with it.
func everyGate(name string, named bool) []*verdict.Gate {
	var all []*verdict.Gate
	add := func(g verdict.Gate) { all = append(all, &g) }
	key := "shop/" + name
	for _, g := range []*v1alpha1.Gate{
		opened(name), closed(name), closed(name, respecting), closed(name, untold), closed(name, suspended),
		opened(name, suspended), opened(name, next(0, v1alpha1.StateClosed)), closed(name, deleted),
		closed(name, audits), opened(name, audits), closed(name, audits, edited), closed(name, audits, suspended),
		closed(name, audits, because(v1alpha1.InvalidSpecReason, "")),
	} {
		add(verdict.Governing(key, g, noon))
		if named {
			add(verdict.Leaving(key, g, noon))
		}
	}
	add(verdict.Gate{Name: key, Effect: verdict.Missing, Governs: true})
	add(verdict.Gate{Name: key, Effect: verdict.Denied, Governs: true})
	if named {
		add(verdict.Gate{Name: key, Effect: verdict.OtherShard})
	}
	return append(all, nil)
}

// everySituation calls do for all that a target under two Gates can be.
func everySituation(do func(situation)) {
	names := []string{"a", "b"}
	for bits := range 4 {
		var heldBy []string
		for i, name := range names {
			if bits>>i&1 > 0 {
				heldBy = append(heldBy, "shop/"+name)
			}
		}
		for _, a := range everyGate("a", bits&1 > 0) {
			for _, b := range everyGate("b", bits&2 > 0) {
				var gates []verdict.Gate
				for _, g := range []*verdict.Gate{a, b} {
					if g != nil {
						gates = append(gates, *g)
					}
				}
				for _, state := range []target.State{target.Free, target.Held, target.Locked, target.Overridden, target.SuspendedByOthers} {
					for _, told := range []time.Time{{}, noon.Add(-2 * time.Hour), noon.Add(-time.Minute)} {
						for _, exempt := range []target.Exemption{target.NotExempt, target.NotReady, target.Imminent, target.Activates} {
							do(situation{verdict.Observed{State: state, HeldBy: heldBy, ReportedAt: told}, gates, target.Plan{Exempt: exempt}})
						}
					}
				}
			}
		}
	}
}

// after returns what a target is after a step.
func (s situation) after(step verdict.Step) situation {
	if !step.Write {
		return s
	}
	s.HeldBy = step.Names
	switch {
	case s.State == target.SuspendedByOthers:
	case step.Hold:
		s.State = target.Held
	default:
		s.State = target.Free
	}
	return s
}

func anyOf(gates []verdict.Gate, is func(verdict.Gate) bool) bool {
	return slices.ContainsFunc(gates, is)
}

func allOf(gates []verdict.Gate, is func(verdict.Gate) bool) bool {
	return !anyOf(gates, func(g verdict.Gate) bool { return !is(g) })
}

// releases returns whether a Gate permits the release of a held target: it is open, or its name is not on the target and it is not
// reconciled here. A suspended Gate was open if the target has no names.
func (s situation) releases(g verdict.Gate) bool {
	switch g.Effect {
	case verdict.Open:
		return true
	case verdict.OtherShard:
		return !slices.Contains(s.HeldBy, g.Name)
	case verdict.Suspended:
		wasOpen := g.Object.Status.Conditions[0].Status == metav1.ConditionTrue
		return !slices.Contains(s.HeldBy, g.Name) && (wasOpen || len(s.HeldBy) > 0)
	default:
		return false
	}
}

func wantsItHeld(g verdict.Gate) bool {
	return g.Effect == verdict.Closed || g.Effect == verdict.Missing || g.Effect == verdict.Denied
}

func TestInvariants(t *testing.T) {
	seen := map[string]int{}
	everySituation(func(s situation) {
		v := verdict.Judge(s.Observed, s.gates)
		step := verdict.Next(s.Observed, v, s.plan)
		fail := func(law string) { t.Errorf("%s\n%s\n%+v\n%+v", law, s, v, step) }
		letsGo := s.State != target.Free && s.State != target.SuspendedByOthers && step.Write && !step.Hold
		wanted := anyOf(s.gates, wantsItHeld)

		if letsGo && s.plan.Exempt == target.NotExempt {
			seen["let go"]++
			if !allOf(s.gates, s.releases) {
				fail("what is held is let go only if all gates let it go")
			}
		}
		if s.State == target.SuspendedByOthers && (step.Hold || step.Claim) {
			fail("what somebody else has suspended is neither held nor let go")
		}
		if wanted && s.plan.Exempt == target.NotExempt && s.State != target.SuspendedByOthers && !step.Hold {
			seen["resumed"]++
			if step.Outcome != verdict.Resumed || s.State != target.Free || s.ReportedAt.IsZero() || s.ReportedAt.Before(noon.Add(-time.Hour)) ||
				anyOf(s.gates, func(g verdict.Gate) bool {
					return wantsItHeld(g) && (g.Object == nil || g.Object.Spec.Mode != v1alpha1.ModeLenient || !slices.Contains(s.HeldBy, g.Name))
				}) {
				fail("what a closed gate governs is held, unless somebody has resumed it since, and all closed gates respect that")
			}
		}
		for _, name := range step.Names {
			seen["named"]++
			if !slices.Contains(s.HeldBy, name) && !anyOf(s.gates, func(g verdict.Gate) bool { return g.Name == name && wantsItHeld(g) }) {
				fail("only a closed gate adds its name")
			}
		}
		if len(s.gates) == 0 && s.plan.Exempt == target.NotExempt && step.Hold {
			fail("what no gate governs is not held")
		}
		if step.Write && !step.Claim {
			seen["written"]++
			after := s.after(step)
			if again := verdict.Next(after.Observed, verdict.Judge(after.Observed, s.gates), s.plan); again.Write {
				fail(fmt.Sprintf("after one write nothing is left to write: %+v", again))
			}
		}
		if step.Waits && (step.Write || !anyOf(s.gates, func(g verdict.Gate) bool { return g.Effect == verdict.Undecided || g.Effect == verdict.Suspended })) {
			fail("it waits for a gate that is about to decide")
		}
	})
	for _, what := range []string{"let go", "resumed", "named", "written"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}
