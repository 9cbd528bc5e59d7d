package target_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	us   = "flux-system/production"
	them = "flux-system/qa"
)

// situation is all that a step is decided on.
type situation struct {
	state                          target.State
	named, others, closed, respect bool
}

func (s situation) String() string {
	return fmt.Sprintf("%s, named %t, others %t, closed %t, respect %t",
		[]string{"free", "held", "locked", "overridden", "foreign"}[s.state], s.named, s.others, s.closed, s.respect)
}

func (s situation) heldBy() []string {
	var heldBy []string
	if s.named {
		heldBy = append(heldBy, us)
	}
	if s.others {
		heldBy = append(heldBy, them)
	}
	return heldBy
}

// wanted is the specification of Next in the words of DESIGN.md, rule by rule
// and not in the order of its code.
func wanted(s situation) target.Step {
	mine, others, both := []string{us}, []string{them}, []string{us, them}
	switch s {
	// Nobody holds it and the gate is open.
	case situation{state: target.Free}, situation{state: target.Free, respect: true}:
		return target.Step{}
	// The gate closes.
	case situation{state: target.Free, closed: true}, situation{state: target.Free, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: mine}
	// Somebody resumed it.
	case situation{state: target.Free, named: true, closed: true}:
		return target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: mine, Again: true}
	case situation{state: target.Free, named: true, others: true, closed: true}:
		return target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: both, Again: true}
	case situation{state: target.Free, named: true, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeResumed, HeldBy: mine}
	case situation{state: target.Free, named: true, others: true, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeResumed, HeldBy: both}
	// Somebody resumed it while another gate held it; this one closes now.
	case situation{state: target.Free, others: true, closed: true}, situation{state: target.Free, others: true, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: both}
	// Somebody resumed it and the gate opens: the next close holds it again.
	case situation{state: target.Free, named: true}, situation{state: target.Free, named: true, respect: true}:
		return target.Step{Outcome: target.OutcomeReleased, Write: true}
	case situation{state: target.Free, named: true, others: true}, situation{state: target.Free, named: true, others: true, respect: true}:
		return target.Step{Outcome: target.OutcomeReleased, Write: true, HeldBy: others}
	// Somebody resumed it while another gate held it, which is the other's matter.
	case situation{state: target.Free, others: true}, situation{state: target.Free, others: true, respect: true}:
		return target.Step{HeldBy: others}

	// The gate stays closed.
	case situation{state: target.Held, named: true, closed: true}, situation{state: target.Held, named: true, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeHeld, Hold: true, HeldBy: mine}
	case situation{state: target.Held, named: true, others: true, closed: true}, situation{state: target.Held, named: true, others: true, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeHeld, Hold: true, HeldBy: both}
	// The gate closes, too.
	case situation{state: target.Held, others: true, closed: true}, situation{state: target.Held, others: true, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: both}
	// We own the hold but the annotation is gone: it is put back.
	case situation{state: target.Held, closed: true}, situation{state: target.Held, closed: true, respect: true}:
		return target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: mine}
	// The gate opens.
	case situation{state: target.Held, named: true}, situation{state: target.Held, named: true, respect: true}:
		return target.Step{Outcome: target.OutcomeReleased, Write: true}
	case situation{state: target.Held, named: true, others: true}, situation{state: target.Held, named: true, others: true, respect: true}:
		return target.Step{Outcome: target.OutcomeReleased, Write: true, Hold: true, HeldBy: others}
	// The gate is open and another one holds it.
	case situation{state: target.Held, others: true}, situation{state: target.Held, others: true, respect: true}:
		return target.Step{Hold: true, HeldBy: others}
	// We own the hold but no gate is named: other gates have to be asked first.
	case situation{state: target.Held}, situation{state: target.Held, respect: true}:
		return target.Step{Hold: true}
	}

	// The lock has put the hold there or put it back: it is taken over, to be
	// kept or to be released.
	if s.state == target.Locked || s.state == target.Overridden {
		step := wanted(situation{target.Held, s.named, s.others, s.closed, s.respect})
		if s.named && s.closed {
			step.Write, step.Again = true, s.state == target.Overridden && !s.respect
		}
		step.Claim = step.Outcome == target.OutcomeReleased && !step.Hold
		return step
	}

	// Foreign: never held, never resumed; what names gates is stale.
	step := target.Step{Write: s.named || s.others}
	if s.closed {
		step.Outcome = target.OutcomeForeign
	} else if s.named {
		step.Outcome = target.OutcomeReleased
	}
	return step
}

func TestNextInEverySituation(t *testing.T) {
	for _, state := range []target.State{target.Free, target.Held, target.Locked, target.Overridden, target.Foreign} {
		for bits := range 16 {
			s := situation{state, bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0}
			got := target.Next(s.state, s.heldBy(), target.Want{Gate: us, Closed: s.closed, Respect: s.respect}, target.Plan{})
			want := wanted(s)
			if !slices.Equal(got.HeldBy, want.HeldBy) {
				t.Errorf("%s: held by %v, want %v", s, got.HeldBy, want.HeldBy)
			}
			got.HeldBy, want.HeldBy = nil, nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", s, got, want)
			}
		}
	}
}

func TestWhatIsHeldInNobodysNameIsReleasedInNobodysName(t *testing.T) {
	for state, want := range map[target.State]target.Step{
		target.Held: {Outcome: target.OutcomeReleased, Write: true},
		target.Free: {},
	} {
		if got := target.Next(state, nil, target.Want{}, target.Plan{}); !reflect.DeepEqual(got, want) {
			t.Errorf("state %d: got %+v, want %+v", state, got, want)
		}
	}
	if got := target.Next(target.Held, []string{us}, target.Want{}, target.Plan{}); got.Write || !got.Hold {
		t.Errorf("what a gate holds is released in nobody's name: %+v", got)
	}
}

func TestNextDoesNotChangeItsArguments(t *testing.T) {
	heldBy := make([]string, 0, 4)
	heldBy = append(heldBy, "a/a", us, "z/z")
	for _, closed := range []bool{true, false} {
		for _, state := range []target.State{target.Free, target.Held, target.Foreign} {
			target.Next(state, heldBy, target.Want{Gate: us, Closed: closed}, target.Plan{})
			target.Next(state, heldBy, target.Want{Gate: "m/m", Closed: closed}, target.Plan{})
			if !slices.Equal(heldBy[:4:4][:3], []string{"a/a", us, "z/z"}) || heldBy[:4][3] != "" {
				t.Fatalf("changed to %q", heldBy[:4])
			}
		}
	}
}

func TestTheAnnotationThatNamesGates(t *testing.T) {
	for value, want := range map[string][]string{
		"":                    nil,
		",":                   nil,
		" , ":                 nil,
		"ns/a":                {"ns/a"},
		"ns/b,ns/a":           {"ns/a", "ns/b"},
		" ns/b , ns/a ,":      {"ns/a", "ns/b"},
		"ns/a,ns/a":           {"ns/a"},
		"a-b/c,a/b":           {"a-b/c", "a/b"},
		"no slash, is a name": {"is a name", "no slash"},
	} {
		if got := target.ParseHeldBy(value); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
	for want, gates := range map[string][]string{
		"":          nil,
		"ns/a":      {"ns/a"},
		"ns/a,ns/b": {"ns/b", "ns/a", "ns/b"},
	} {
		before := slices.Clone(gates)
		got := target.FormatHeldBy(gates)
		if got != want || !slices.Equal(before, gates) {
			t.Errorf("%q: got %q, want %q; the argument is %q after", before, got, want, gates)
		}
		if again := target.FormatHeldBy(target.ParseHeldBy(got)); again != got {
			t.Errorf("%q is %q after parsing and formatting", got, again)
		}
	}
}

func TestAnExemptTargetIsLetGo(t *testing.T) {
	const other = "z/other"
	closed, respect := target.Want{Gate: us, Closed: true}, target.Want{Gate: us, Closed: true, Respect: true}
	open := target.Want{Gate: us}
	imminent, notReady, activates := target.Plan{Exempt: target.Imminent}, target.Plan{Exempt: target.NotReady}, target.Plan{Exempt: target.Activates}
	pending, stale := target.Plan{Pending: true}, target.Plan{Stale: true}
	exempt := target.OutcomeExempt
	for name, tc := range map[string]struct {
		state  target.State
		heldBy []string
		want   target.Want
		plan   target.Plan
		step   target.Step
	}{
		"free: it notes the gate":               {target.Free, nil, closed, imminent, target.Step{Outcome: exempt, Write: true, HeldBy: []string{us}}},
		"free, noted already":                   {target.Free, []string{us}, closed, imminent, target.Step{Outcome: exempt, HeldBy: []string{us}}},
		"free, another is noted":                {target.Free, []string{other}, closed, imminent, target.Step{Outcome: exempt, Write: true, HeldBy: []string{us, other}}},
		"held: released, but noted":             {target.Held, []string{us}, closed, imminent, target.Step{Outcome: exempt, Write: true, HeldBy: []string{us}}},
		"held by nobody's managed fields":       {target.Locked, []string{us}, closed, imminent, target.Step{Outcome: exempt, Write: true, HeldBy: []string{us}, Claim: true}},
		"nothing to hold yet, nothing to write": {target.Free, nil, closed, notReady, target.Step{Outcome: exempt}},
		"activated instead: nothing is noted":   {target.Held, []string{us, other}, closed, activates, target.Step{Outcome: exempt, Write: true}},
		"activated instead, noted before":       {target.Free, []string{us}, closed, activates, target.Step{Outcome: exempt, Write: true}},
		"activated instead, nothing to do":      {target.Free, nil, closed, activates, target.Step{Outcome: exempt}},
		"the other gate would let it go":        {target.Held, []string{us, other}, open, imminent, target.Step{Outcome: target.OutcomeReleased, Write: true, HeldBy: []string{other}}},
		"exempt so far: held, not again":        {target.Free, []string{us}, closed, pending, target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: []string{us}}},
		"exempt so far is not resumed":          {target.Free, []string{us}, respect, pending, target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: []string{us}}},
		"held in another way":                   {target.Held, []string{us}, closed, stale, target.Step{Outcome: target.OutcomeHeld, Write: true, Hold: true, HeldBy: []string{us}}},
		"foreign comes first":                   {target.Foreign, nil, closed, imminent, target.Step{Outcome: target.OutcomeForeign}},
	} {
		if got := target.Next(tc.state, tc.heldBy, tc.want, tc.plan); !reflect.DeepEqual(got, tc.step) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tc.step)
		}
	}
}
