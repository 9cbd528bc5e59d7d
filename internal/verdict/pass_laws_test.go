package verdict_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

var (
	granted = verdict.Pass{State: verdict.PassInProgress, Value: "2026-11-24T12:00:00Z", Since: noon, Until: noon.Add(time.Hour)}
	before  = verdict.Pass{State: verdict.PassInProgress, Value: "2026-11-24T11:30:00Z", Since: noon.Add(-30 * time.Minute), Until: noon.Add(20 * time.Minute)}
)

// everyAsk are the requests for a pass that can be on a target.
func everyAsk() []*verdict.PassRequest {
	return []*verdict.PassRequest{
		nil, {Pass: granted, At: noon, Gates: "*"}, {Pass: granted, At: noon, Gates: "shop/a"}, {Pass: granted, At: noon, Gates: "shop/a,shop/b"}, {Pass: granted, At: noon},
		{Pass: granted, At: noon.Add(-2 * time.Hour), Gates: "*"}, {Pass: granted, At: noon.Add(-2 * time.Hour), Gates: "*", Expired: true},
		{Pass: granted, At: noon, Gates: "*", Refused: "no"}, {Pass: granted, At: noon, Gates: "*", Refused: "no", Unrecordable: true},
	}
}

// everyPass calls do for all situations of a target under two Gates that passes, or has a request to pass.
func everyPass(do func(situation)) {
	ended := before
	ended.State, ended.Ended, ended.Outcome = verdict.PassEnded, noon, verdict.PassSucceeded
	barred := verdict.Governing("shop/a", closed("a"), noon)
	barred.Barred = "a hard freeze"
	for _, heldBy := range [][]string{nil, {"shop/a"}, {"shop/a", "shop/b"}} {
		for _, a := range append(everyGate("a", len(heldBy) > 0), &barred) {
			for _, b := range everyGate("b", len(heldBy) > 1) {
				var gates []verdict.Gate
				for _, g := range []*verdict.Gate{a, b} {
					if g != nil {
						gates = append(gates, *g)
					}
				}
				add := func(o verdict.Observed) {
					o.HeldBy, o.Now = heldBy, noon
					do(situation{Observed: o, gates: gates})
					if o.RequestPresent = o.Request == nil && o.Pass.State != ""; o.RequestPresent {
						do(situation{Observed: o, gates: gates})
					}
				}
				for _, state := range []target.State{target.Free, target.Held, target.Locked, target.Overridden, target.SuspendedByOthers} {
					for _, pass := range []verdict.Pass{{}, ended, before} {
						for _, ask := range everyAsk() {
							add(verdict.Observed{State: state, Pass: pass, Request: ask})
						}
					}
				}
				for _, outcome := range []string{"", verdict.PassSucceeded, verdict.PassTimedOut} {
					for _, list := range []string{"shop/a", "shop/a,shop/b"} {
						if len(heldBy) > 0 {
							pass := before
							pass.Gates = list // heldBy may differ: others write it, too
							add(verdict.Observed{State: target.Passing, Pass: pass, Outcome: outcome})
						}
					}
				}
			}
		}
	}
}

// passed returns what a target is after a step.
func (s situation) passed(step verdict.Step) situation {
	if step.Write {
		s = s.after(step)
		if step.Outcome == verdict.Passing {
			s.State = target.Passing
		}
		if s.Pass = step.Pass; s.Request != nil && s.Request.Pass.Value == s.Pass.Value {
			s.Request, s.RequestPresent = nil, true
		}
	}
	return s
}

func TestPassInvariants(t *testing.T) {
	seen := map[string]int{}
	everyPass(func(s situation) {
		v := verdict.Judge(s.Observed, s.gates)
		step := verdict.Next(s.Observed, v, s.plan)
		fail := func(law string) {
			t.Errorf("%s\n%s, ask %+v, pass %+v, outcome %q\n%+v\n%+v", law, s, s.Request, s.Pass, s.Outcome, v, step)
		}
		passes := step.Outcome == verdict.Passing
		switch {
		case passes && s.State == target.Held:
			seen["begun"]++
			want := granted
			want.Gates = target.FormatHeldBy(step.Names)
			if s.Request == nil || s.Request.Refused != "" || step.Pass != want || !step.Write || !slices.Equal(step.Names, s.HeldBy) {
				fail("a pass begins only if requested, and is recorded in the same write")
			}
			if v.Waits || !allOf(v.Holders, func(g verdict.Gate) bool { return gate.PassCovers(s.Request.Gates, g.Name) }) {
				fail("a pass begins only if all gates have decided, and the request lists all that hold the target")
			}
			if !allOf(v.Holders, func(g verdict.Gate) bool {
				last := g.Object != nil && g.Object.Status.LastTransition != nil && !s.Request.At.Before(g.Object.Status.LastTransition.At.Time)
				return g.Effect == verdict.Closed && last && g.Barred == "" && slices.Contains(s.HeldBy, g.Name)
			}) {
				fail("a pass begins only if all gates that hold the target have decided that they are closed, before somebody asked")
			}
		case passes && s.State == target.Passing:
			seen["gone on"]++
			if s.Outcome != "" || step.Pass != s.Pass || len(step.Names) == 0 || !allOf(v.Holders, func(g verdict.Gate) bool {
				return slices.Contains(target.ParseHeldBy(s.Pass.Gates), g.Name) && g.Barred == "" && g.Effect != verdict.Missing && g.Effect != verdict.Denied
			}) {
				fail("a pass goes on only until it has ended, or a gate ends it")
			}
		case passes:
			fail("only what gates hold passes")
		case s.State == target.Passing:
			seen["ended"]++
			if !step.Write || !step.Hold && !allOf(s.gates, s.releases) || step.Ends.State != verdict.PassEnded {
				fail("what passes no more is held again at once, unless all gates let it go")
			}
		}
		if s.State == target.SuspendedByOthers && (step.Hold || step.Claim || passes) {
			fail("what somebody else has suspended is neither held nor let go")
		}
		if passes == step.Hold && passes || passes && step.Pass.State != verdict.PassInProgress || !passes && step.Write && step.Pass.State == verdict.PassInProgress {
			fail("while it says that it passes, it is not held, and else it does not say so")
		}
		if after := s.passed(step); step.Write && !step.Claim {
			s := after
			again := verdict.Next(s.Observed, verdict.Judge(s.Observed, s.gates), s.plan)
			begins := again.Outcome == verdict.Passing && s.State == target.Held || again.Pass.State == verdict.PassRefused
			if again.Write && (!begins || s.Request == nil) {
				fail(fmt.Sprintf("after one write nothing is left to write: %+v", again))
			}
		}
		if step.Write && step.Pass.State == verdict.PassRefused || step.Refused != "" {
			seen["refused"]++
		}
	})
	for _, what := range []string{"begun", "gone on", "ended", "refused"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}

// handles marks a kustomization as one of a kind that can have a pass.
var handles = target.Definition{Handles: true}

// The target is reconciled repeatedly, with the previous request on it, or with an older one that Flux restores.
func TestValuePassesOnce(t *testing.T) {
	gates := governing(closed("a"))
	obj := func(value string, pass verdict.Pass, lever map[string]any) *target.Object {
		return kustomization("apps", requesting(value, "shop/a"), passing(pass), heldBy("shop/a", lever))
	}
	first := rule(obj("2026-11-24T11:59:00Z", verdict.Pass{}, suspension), gates, handles, noon).Step
	if first.Outcome != verdict.Passing {
		t.Fatalf("%+v", first)
	}
	ended := first.Pass
	ended.State = verdict.PassEnded
	for _, value := range []string{"2026-11-24T11:59:00Z", "2026-11-24T11:58:00Z", "2026-11-24T11:59:00.000Z"} {
		if step := rule(obj(value, ended, suspension), gates, handles, noon.Add(time.Minute)).Step; step.Write || !step.Hold {
			t.Errorf("%s: %+v", value, step)
		}
	}
	if step := rule(obj("2026-11-24T11:59:01Z", ended, suspension), gates, handles, noon.Add(time.Minute)).Step; step.Outcome != verdict.Passing {
		t.Errorf("a later one: %+v", step)
	}
}
