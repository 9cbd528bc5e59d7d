package gate_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func TestInvalidSpecKeepsEndOfRequestWindow(t *testing.T) {
	g := accepted(t, closed(window(time.Hour)), open("2026-11-23T12:00:00Z/10m").seen("2026-11-23T12:00:00Z"))
	d := gate.Decide(g, noon)
	g.Status.NextTransition = d.Next
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue}}
	g.Spec.TimeZone = "Nowhere/Else"
	if d := gate.Decide(g, utc("2026-11-23T12:09:59Z")); d.State != v1alpha1.StateOpened || !d.Recheck.Equal(utc("2026-11-23T12:10:00Z")) {
		t.Errorf("%s, recheck %s", d.Message, d.Recheck)
	}
	if d := gate.Decide(g, utc("2026-11-23T12:10:00Z")); d.State != v1alpha1.StateClosed {
		t.Errorf("stays %s: %s", d.State, d.Message)
	}
}

// A Gate whose requests all have the same window is one with that as spec.window.
func TestRequestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ofGate := rapid.SampledFrom([]time.Duration{0, time.Second, 5 * time.Minute, 2 * time.Hour}).Draw(t, "window of the gate")
		own := rapid.SampledFrom([]time.Duration{time.Second, 1500 * time.Millisecond, 10 * time.Minute, 3 * time.Hour}).Draw(t, "window of requests")
		edits := []func(*v1alpha1.GateSpec){windows(weekly("morning", "06:00", "09:00"))}
		with, without := closed(edits...), closed(edits...)
		if rapid.Bool().Draw(t, "opened by default") {
			with, without = opened(closePeriods(closing(weekly("morning", "06:00", "09:00"), ""))), opened(closePeriods(closing(weekly("morning", "06:00", "09:00"), "")))
		}
		without.Spec.Window = duration(own)
		if ofGate > 0 {
			with.Spec.Window, without.Spec.Window = duration(ofGate), duration(min(ofGate, own))
		}
		now := noon
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "deciseconds later")) * 100 * time.Millisecond)
			actions := []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose}
			if ofGate > 0 && ofGate < own {
				actions = actions[:1] // spec.window does not limit a close with a duration
			}
			action := rapid.SampledFrom(actions).Draw(t, "action")
			at := now.Add(time.Duration(rapid.IntRange(-600, 3600).Draw(t, "seconds ahead")) * time.Second)
			annotate(with, action, ledger.FormatRequest(at, duration(own)))
			annotate(without, action, ledger.FormatRequest(at, nil))
			a, b := handle(with, now), handle(without, now)
			if len(a) != len(b) || len(a) == 1 && (a[0].Err == nil) != (b[0].Err == nil) {
				t.Fatalf("%v is handled, and %v", a, b)
			}
			later := now.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "seconds on")) * time.Second)
			x, y := gate.Decide(with, later), gate.Decide(without, later)
			if x.State != y.State || strings.Replace(x.Message, " for "+own.String(), "", 1) != y.Message || !reflect.DeepEqual(x.Next, y.Next) || !x.Recheck.Equal(y.Recheck) || !reflect.DeepEqual(x.ResetToDefaultAt, y.ResetToDefaultAt) {
				t.Fatalf("at %s\n%+v\nbut\n%+v", stamp(later), x, y)
			}
		}
	})
}
