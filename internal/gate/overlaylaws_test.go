package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// kustomization returns a target in the namespace of the production Gate.
func kustomization(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": "flux-system", "name": name},
	}}
}

// only limits an exception to Kustomizations.
func only(names ...string) edit {
	return func(e *v1alpha1.GateException) {
		for _, name := range names {
			e.Spec.Targets = append(e.Spec.Targets, v1alpha1.TargetReference{Kind: "Kustomization", Name: name})
		}
	}
}

// resolved returns a Gate with the status after a decision.
func resolved(g *v1alpha1.Gate, now time.Time, exceptions ...*v1alpha1.GateException) (*v1alpha1.Gate, *gate.Resolution) {
	r := gate.NewSnapshot(g, nil, exceptions...).Resolve(gate.Observed{Stamps: ledger.Stamped}, now)
	after := g.DeepCopy()
	after.Status = r.Status(nil)
	return after, r
}

func opensSome(all []v1alpha1.Overlay) bool {
	return slices.ContainsFunc(all, func(o v1alpha1.Overlay) bool { return o.State == isOpened })
}

// definition returns the state of a target according to the definition of scoped exceptions: the first scoped exception that closes it, then
// the first one that opens it, then the state of the Gate. All settings with precedence over exceptions decide first.
func definition(g *v1alpha1.Gate, name string, now time.Time, scoped, unscoped []*v1alpha1.GateException) v1alpha1.State {
	state := v1alpha1.State("")
	for _, e := range scoped {
		if !slices.ContainsFunc(e.Spec.Targets, func(ref v1alpha1.TargetReference) bool { return ref.Name == name }) {
			continue
		}
		alone := *e
		alone.Spec.Targets = nil
		switch d := gate.Decide(g, now, &alone); {
		case d.Reason != v1alpha1.ExceptionAppliesReason:
		case d.State == isClosed, state == "":
			state = d.State
		}
	}
	if state != "" {
		return state
	}
	return gate.Decide(g, now, unscoped...).State
}

func TestOverlaysGiveTargetsTheirDefinedStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGate(t)
		g.Generation, g.Status.ObservedGeneration = 1, 1
		if rapid.IntRange(0, 2).Draw(t, "has a hard freeze") == 0 {
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, closing(drawPeriod(t, "hard"), "Deny"))
		}
		now := utc(hourly(drawHour(t, "now"))).Add(time.Second)
		if at := now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "hours since the request")) * time.Hour); at.Before(now) {
			action := rapid.SampledFrom([]v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose}).Draw(t, "request")
			annotate(g, action, fmt.Sprintf("%s/%dm", stamp(at), rapid.SampledFrom([]int{30, 200}).Draw(t, "lasts")))
			handle(g, at)
		}
		var scoped, unscoped []*v1alpha1.GateException
		for _, e := range drawExceptions(t) {
			if e.Spec.LeadTime != nil || rapid.Bool().Draw(t, e.Name+" is unscoped") {
				unscoped = append(unscoped, e)
				continue
			}
			only(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2).Draw(t, e.Name+" targets")...)(e)
			if rapid.Bool().Draw(t, e.Name+" lasts long") {
				valid(hourly(0), hourly(47))(e)
			}
			scoped = append(scoped, e)
		}
		after, r := resolved(g, now, slices.Concat(scoped, unscoped)...)
		if own := gate.Decide(g, now, unscoped...); r.Reason != own.Reason || r.State != own.State {
			t.Fatalf("the Gate is %s by %s, want %s by %s", r.State, r.Reason, own.State, own.Reason)
		}
		edge := now.Add(240 * time.Hour)
		for _, at := range r.Rechecks {
			if at.After(now) && at.Before(edge) {
				edge = at
			}
		}
		scope := verdict.Scope{Reaches: func(string, string) bool { return true }}
		for _, name := range []string{"a", "b", "c", "d"} {
			is := scope.ForTarget(after, kustomization(name))
			for _, at := range []time.Time{now, now.Add(edge.Sub(now) / 2), edge.Add(-1)} {
				if effect, want := verdict.Governing("", is, at).Effect, definition(g, name, at, scoped, unscoped); (effect == verdict.Open) != (want == isOpened) || effect == verdict.Undecided {
					t.Fatalf("%s has effect %d at %s, want %s; overlays %+v", name, effect, at, want, after.Status.Overlays)
				}
			}
			switch effect, want := verdict.Governing("", is, edge).Effect, definition(g, name, edge, scoped, unscoped); {
			case effect == verdict.Open && want == isClosed:
				t.Fatalf("%s is released at the next edge %s, although it must be closed; overlays %+v", name, edge, after.Status.Overlays)
			case effect == verdict.Closed && want == isOpened && definition(g, name, edge.Add(-1), scoped, unscoped) == isOpened:
				t.Fatalf("%s stays open at the next edge %s, but would be held; overlays %+v %+v %+v", name, edge, after.Status.Overlays, is.Status.NextTransition, after.Status.NextTransition)
			}
		}
	})
}

func TestDecisionWithoutOverlaysHasNone(t *testing.T) {
	for name, e := range map[string]*v1alpha1.GateException{
		"without targets":     exception(byDefault(isOpened)),
		"expired":             exception(byDefault(isOpened), only("a"), valid("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z")),
		"being deleted":       exception(byDefault(isOpened), only("a"), deleted),
		"of another gate":     exception(byDefault(isOpened), only("a"), ofGate("staging")),
		"with periods passed": exception(opensIn(dated("a", "2026-11-23T11:10:00Z", "2026-11-23T11:20:00Z")), only("a")),
	} {
		if d := gate.Decide(production(closed()), noon, e); len(d.Overlays) > 0 {
			t.Errorf("an exception %s has overlays %+v", name, d.Overlays)
		}
	}
}

func TestExceptionMessageNamesItsTargets(t *testing.T) {
	e := exception(byDefault(isOpened), only("a", "b"))
	for at, want := range map[string]string{
		"2026-11-23T12:00:00Z": "Exception applies to Kustomization/a, Kustomization/b of gate 'flux-system/production' until ",
		"2026-11-01T12:00:00Z": "Exception applies to Kustomization/a, Kustomization/b of gate 'flux-system/production' from ",
	} {
		if d := gate.DecideException(e, production(closed()), []*v1alpha1.GateException{e}, utc(at)); !strings.HasPrefix(d.Message, want) {
			t.Errorf("got %q, want %q", d.Message, want)
		}
	}
}

func TestOverlayOpensNothingWithoutDependencies(t *testing.T) {
	g := production(closed())
	g.Spec.DependsOn = []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "db"}}
	e := exception(byDefault(isOpened), only("a"))
	if r := gate.NewSnapshot(g, nil, e).Resolve(gate.Observed{Stamps: ledger.Stamped}, noon); r.Needs != gate.NeedsDependencies {
		t.Errorf("got need %d, want the dependencies", r.Needs)
	}
	for _, ready := range []bool{false, true} {
		dependencies := []v1alpha1.DependencyStatus{gate.RecordDependency(g, &g.Spec.DependsOn[0], ready, "", noon)}
		r := gate.NewSnapshot(g, nil, e).Resolve(gate.Observed{Stamps: ledger.Stamped, Dependencies: dependencies}, noon)
		if opensSome(r.Overlays) != ready {
			t.Errorf("ready %t: got overlays %+v", ready, r.Overlays)
		}
	}
}

func TestOverlayOpensByBothClocks(t *testing.T) {
	g := production(closed())
	e := exception(byDefault(isOpened), only("a"), valid("2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"))
	resolve := func(o gate.Observed, at string) *gate.Resolution {
		o.Stamps, o.TwoClocks = ledger.Stamped, true
		return gate.NewSnapshot(g, nil, e).Resolve(o, utc(at))
	}
	server := func(reported string) *gate.ServerTime {
		return &gate.ServerTime{RequestedAt: utc("2026-11-23T12:00:01Z"), ReceivedAt: utc("2026-11-23T12:00:01Z"), Reported: utc(reported)}
	}
	at := "2026-11-23T12:00:01Z"
	if r := resolve(gate.Observed{}, at); r.Needs != gate.NeedsServerTime {
		t.Errorf("got need %d, want the server time", r.Needs)
	}
	for name, test := range map[string]struct {
		server *gate.ServerTime
		opens  bool
	}{
		"reached":     {server("2026-11-23T12:00:00Z"), true},
		"not reached": {server("2026-11-23T11:59:00Z"), false},
		"unknown":     {&gate.ServerTime{Err: gate.ErrTimeUnknown}, false},
	} {
		r := resolve(gate.Observed{Server: test.server}, at)
		if opensSome(r.Overlays) != test.opens || r.State != isClosed {
			t.Errorf("%s: got %s with overlays %+v", name, r.State, r.Overlays)
		}
	}
	g.Status.Overlays = []v1alpha1.Overlay{{Exception: "x", State: isOpened, Until: &metav1.Time{Time: utc("2026-11-23T13:00:00Z")}}}
	if r := resolve(gate.Observed{Behind: time.Minute}, "2026-11-23T12:59:30Z"); len(r.Overlays) > 0 {
		t.Errorf("the server's clock has reached the end, got overlays %+v", r.Overlays)
	}
	g.Spec.OpenPeriods = []v1alpha1.Period{dated("late", "2026-11-23T13:00:00Z", "2026-11-23T14:00:00Z")}
	if r := resolve(gate.Observed{Server: &gate.ServerTime{Reported: utc("2026-11-23T12:59:00Z")}}, "2026-11-23T13:00:01Z"); r.State != isClosed || opensSome(r.Overlays) {
		t.Errorf("the overlay has ended by the controller's clock: got %s with overlays %+v", r.State, r.Overlays)
	}
}

// An exception with targets that exceeds the limit and may close closes the Gate, because the number of overlays is limited.
func TestExcessExceptionsWithTargets(t *testing.T) {
	g := production(opened())
	var all []*v1alpha1.GateException
	for i := range v1alpha1.MaxEffectiveExceptions {
		e := exception(called(fmt.Sprintf("x%02d", i)), byDefault(isOpened), only("a"))
		all = append(all, e)
	}
	extra := exception(called("newest"), created("2026-11-23T11:00:00Z"), only("b"), closesIn(dated("late", "2026-11-23T12:30:00Z", "2026-11-23T12:40:00Z")))
	for _, test := range []struct {
		extra []*v1alpha1.GateException
		state v1alpha1.State
		n     int
	}{
		{nil, isOpened, v1alpha1.MaxEffectiveExceptions},
		{[]*v1alpha1.GateException{extra}, isClosed, v1alpha1.MaxEffectiveExceptions},
		{[]*v1alpha1.GateException{exception(called("newest"), created("2026-11-23T11:00:00Z"), byDefault(isOpened), only("b"))}, isOpened, v1alpha1.MaxEffectiveExceptions},
	} {
		if d := gate.Decide(g, noon, slices.Concat(all, test.extra)...); d.State != test.state || len(d.Overlays) != test.n {
			t.Errorf("got %s with %d overlays, want %s with %d: %s", d.State, len(d.Overlays), test.state, test.n, d.Message)
		}
	}
}

// scopedExceptions returns as many exceptions with targets as can take effect, each with as many periods and targets as it may have.
func scopedExceptions() []*v1alpha1.GateException {
	all := restlessExceptions(v1alpha1.MaxEffectiveExceptions)
	for _, e := range all {
		e.Spec.LeadTime, e.Spec.OpenPeriods = nil, nil
		for i := range v1alpha1.MaxExceptionTargets {
			only(fmt.Sprintf("%s-%d", e.Name, i))(e)
		}
	}
	return all
}

func BenchmarkDecideWithOverlays(b *testing.B) {
	for _, bench := range []struct {
		name       string
		exceptions []*v1alpha1.GateException
		requests   int
	}{{"none", nil, 0}, {"most", scopedExceptions(), v1alpha1.MaxLimitedRequests}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			g := restless()
			for i := range bench.requests {
				value := stamp(noon) + "/4h"
				for j := range v1alpha1.MaxRequestTargets {
					value += fmt.Sprintf(",only=Kustomization/request-%d-%d", i, j)
				}
				annotate(g, v1alpha1.RequestOpen, value)
				handle(g, noon)
			}
			if n := len(gate.Decide(g, noon, bench.exceptions...).Overlays); n < bench.requests {
				b.Fatalf("%d overlays", n)
			}
			for b.Loop() {
				gate.Decide(g, noon, bench.exceptions...)
			}
		})
	}
}

func TestTargetsAreEnqueuedWhenOverlaysChange(t *testing.T) {
	g := production(closed())
	g.Generation, g.Status.ObservedGeneration = 1, 1
	before, _ := resolved(g, noon)
	e := exception(byDefault(isOpened), only("a"), valid("2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"))
	for _, step := range []struct {
		at      string
		affects bool
	}{{"2026-11-23T12:00:00Z", true}, {"2026-11-23T12:30:00Z", false}, {"2026-11-23T13:00:00Z", true}} {
		after, r := resolved(before, utc(step.at), e)
		if r.AffectsTargets != step.affects || r.IsNew != step.affects || gate.AffectsTargets(before, after) != step.affects {
			t.Errorf("at %s: affects the targets: %t; overlays %+v", step.at, r.AffectsTargets, after.Status.Overlays)
		}
		before = after
	}
}
