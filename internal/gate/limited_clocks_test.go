package gate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// effectOn returns the effect of a Gate on the Kustomization a.
func effectOn(g *v1alpha1.Gate, at time.Time) verdict.Effect {
	obj := kustomization("a")
	obj.SetNamespace(g.Namespace)
	return verdict.Governing("", verdict.Scope{}.ForTarget(g, obj), at).Effect
}

// requesting returns the Gate production after it has handled a request at noon.
func requesting(g *v1alpha1.Gate, action v1alpha1.RequestAction, value string) *v1alpha1.Gate {
	production(g)
	g.Generation, g.Status.ObservedGeneration = 1, 1
	annotate(g, action, value)
	by(g, action, "bob", "")
	g, _ = resolved(g, noon)
	return g
}

// Requests for some targets and for the whole Gate obey the same rules about the order of requests that are read together.
func TestLineKeepsTargetsClosed(t *testing.T) {
	for name, tc := range map[string]struct{ lines, open, at string }{
		"the order is not proven":       {"1\tclose\tannotation\t2026-11-23T12:00:00Z/4h,only=Kustomization/a\tbob\t", "2026-11-23T12:00:30Z/1h", "2026-11-23T12:00:40Z"},
		"an ended close hides no other": {"1\tclose\tannotation\t2026-11-23T12:00:00Z/1m\tbob\t\n2\tclose\tannotation\t2026-11-23T12:00:10Z/1m,only=Kustomization/b\tbob\t", "2026-11-23T12:00:05Z/1h", "2026-11-23T12:05:00Z"},
	} {
		g := production(closed())
		g.Generation, g.Status.ObservedGeneration = 1, 1
		annotate(g, v1alpha1.RequestOpen, tc.open)
		g.Annotations[v1alpha1.UnhandledAnnotation] = tc.lines
		if after, r := resolved(g, utc(tc.at)); effectOn(after, utc(tc.at)) != verdict.Closed {
			t.Errorf("%s: %s, handled %v", name, r.State, r.Handled)
		}
	}
}

func TestLimitedClosesAreOnTimeWithInvalidSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		g     *v1alpha1.Gate
		close string
	}{
		"planned before":              {requesting(opened(), v1alpha1.RequestClose, "2026-11-23T13:00:00Z/2h,only=Kustomization/a"), ""},
		"planned after, some targets": {requesting(closed(), v1alpha1.RequestOpen, "2026-11-23T12:00:00Z/4h,only=Kustomization/a"), "2026-11-23T13:00:00Z/2h,only=Kustomization/a"},
		"planned after, all targets":  {requesting(closed(), v1alpha1.RequestOpen, "2026-11-23T12:00:00Z/4h,only=Kustomization/a"), "2026-11-23T13:00:00Z/2h"},
		"the end of an open":          {requesting(closed(), v1alpha1.RequestOpen, "2026-11-23T12:00:00Z/1h,only=Kustomization/a"), ""},
	} {
		invalid(&tc.g.Spec)
		tc.g.Generation = 2
		if tc.close != "" {
			annotate(tc.g, v1alpha1.RequestClose, tc.close)
		}
		after, r := resolved(tc.g, noon.Add(10*time.Minute))
		edge := noon.Add(time.Hour)
		if before, then := effectOn(after, edge.Add(-1)), effectOn(after, edge); before != verdict.Open || then == verdict.Open {
			t.Errorf("%s: effect %d, then %d; overlays %+v", name, before, then, after.Status.Overlays)
		}
		if !slices.ContainsFunc(r.Rechecks, edge.Equal) {
			t.Errorf("%s: rechecks %v", name, r.Rechecks)
		}
	}
}

// A target opens only by both clocks, also at the end of a close request, and after a close that the controller has missed.
func TestTargetsOpenByBothClocks(t *testing.T) {
	ends := requesting(opened(), v1alpha1.RequestClose, "2026-11-23T12:00:00Z/1h,only=Kustomization/a")
	missed := requesting(closed(), v1alpha1.RequestOpen, "2026-11-23T14:00:00Z/1h,only=Kustomization/a")
	annotate(missed, v1alpha1.RequestOpen, "2026-11-23T12:00:00Z/1h,only=Kustomization/a")
	missed, _ = resolved(missed, noon)
	for name, tc := range map[string]struct {
		g  *v1alpha1.Gate
		at time.Time
	}{"the end of a close": {ends, noon.Add(time.Hour)}, "after a missed close": {missed, noon.Add(2 * time.Hour)}} {
		o := gate.Observed{Stamps: ledger.Stamped, TwoClocks: true}
		if r := gate.NewSnapshot(tc.g, nil).Resolve(o, tc.at); r.Needs != gate.NeedsServerTime {
			t.Errorf("%s: needs %d", name, r.Needs)
		}
		for said, server := range map[string]*gate.ServerTime{
			"behind":  {RequestedAt: tc.at, ReceivedAt: tc.at, Reported: tc.at.Add(-time.Minute)},
			"unknown": {Err: gate.ErrTimeUnknown},
			"equal":   {RequestedAt: tc.at, ReceivedAt: tc.at, Reported: tc.at},
		} {
			o.Server = server
			after, r := tc.g.DeepCopy(), gate.NewSnapshot(tc.g, nil).Resolve(o, tc.at)
			after.Status = r.Status(nil)
			if effect := effectOn(after, tc.at); (effect == verdict.Open) != (said == "equal") {
				t.Errorf("%s, the server's time is %s: effect %d, overlays %+v", name, said, effect, after.Status.Overlays)
			}
		}
	}
	early := noon.Add(time.Hour - 20*time.Second)
	after, r := ends.DeepCopy(), gate.NewSnapshot(ends, nil).Resolve(gate.Observed{Stamps: ledger.Stamped, TwoClocks: true, Behind: 30 * time.Second}, early)
	after.Status = r.Status(nil)
	if effect := effectOn(after, early); effect != verdict.Closed {
		t.Errorf("the close has ended by the server's clock only: effect %d, overlays %+v", effect, after.Status.Overlays)
	}
}
