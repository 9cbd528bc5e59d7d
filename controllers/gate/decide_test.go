package gate

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func newGate(spec v1alpha1.GateSpec) *v1alpha1.Gate {
	return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "flux-system", Annotations: map[string]string{}}, Spec: spec}
}

func isOpened(g *v1alpha1.Gate) bool { return conditions.IsTrue(g, v1alpha1.OpenedCondition) }

// opened returns a text of the condition Opened of a Gate.
func opened(g *v1alpha1.Gate) string {
	c := conditions.Get(g, v1alpha1.OpenedCondition)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// timeUnknown makes reads of the server time fail.
func (r *decider) timeUnknown() {
	r.ServerTime = func(context.Context) (time.Time, error) { return time.Time{}, context.DeadlineExceeded }
}

// at decides at a time of the controller's clock. The API server's clock is behind by r.ahead.
func (r *decider) at(g *v1alpha1.Gate, server *clocktesting.FakePassiveClock, own time.Duration) time.Duration {
	server.SetTime(start.Add(own - r.ahead))
	return r.look(g, server.Now())
}

func TestOpenRequestOpensImmediatelyWithEqualClocks(t *testing.T) {
	for name, at := range map[string]time.Duration{"at a full second": 0, "within a second": 700 * time.Millisecond} {
		server := clocktesting.NewFakePassiveClock(start)
		r := newDecider(server, 0)
		g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
		r.at(g, server, 0)
		g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = start.Format(time.RFC3339) // as date formats it
		if r.at(g, server, at); !isOpened(g) || r.asked != 1 {
			t.Errorf("%s: %s, the server time was read %d times", name, opened(g), r.asked)
		}
	}
}

func TestNewGateOpensByBothClocks(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 2*time.Second)
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{dated("nights", hours(1), hours(2))}})
	if r.at(g, server, hours(1)+time.Second); isOpened(g) {
		t.Error(opened(g))
	}
	if r.at(g, server, hours(1)+2*time.Second); !isOpened(g) {
		t.Error(opened(g))
	}
}

func TestFastClockWaitsForServerTimeInOneWrite(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 2*time.Second)
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{dated("nights", hours(1), hours(2))}})
	r.at(g, server, 0)
	const want = "False OutsideOpenPeriods: Gate closed outside its open periods, scheduled for opening at 2026-11-23T13:00:00Z by 'nights', " + gate.ClocksDiffer
	var waits *v1alpha1.GateStatus
	passes := 0
	for now := hours(1); now < hours(1)+2*time.Second; passes++ {
		now += r.at(g, server, now)
		if opened(g) != want || waits != nil && !equality.Semantic.DeepEqual(*waits, g.Status) {
			t.Fatalf("got  %s, before %+v\nwant %s", opened(g), waits, want)
		}
		if waits = g.Status.DeepCopy(); passes > 15 || r.skew() < 1 || r.skew() > 2 {
			t.Fatalf("pass %d, skew %g", passes, r.skew())
		}
	}
	if r.at(g, server, hours(1)+2*time.Second); !isOpened(g) || strings.Contains(opened(g), gate.ClocksDiffer) || r.asked != passes+1 {
		t.Errorf("%s, the server time was read %d times in %d passes", opened(g), r.asked, passes)
	}
	before := r.asked
	for _, at := range []float64{1.5, 2, 2.5} {
		r.at(g, server, hours(at))
	}
	if isOpened(g) || r.asked != before {
		t.Errorf("%s, the server time was read %d times without an opening", opened(g), r.asked-before)
	}
}

// The close period has ended by the controller's clock when the server time becomes known.
func TestOpenGateReadsServerTimeUntilKnown(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 15*time.Minute)
	known := r.ServerTime
	g := newGate(v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(1)+10*time.Minute)},
	})
	r.at(g, server, 0)
	r.timeUnknown()
	for range 2 {
		r.at(g, server, hours(1)+14*time.Minute)
		if got := conditions.GetReason(g, "Ready"); !isOpened(g) || got != v1alpha1.TimeUnknownReason {
			t.Errorf("the time is unknown: %s, Ready is %s", opened(g), got)
		}
	}
	r.ServerTime = known
	if r.at(g, server, hours(1)+14*time.Minute); isOpened(g) {
		t.Errorf("the time is known: %s", opened(g))
	}
}

// Without a transition, targets that users have resumed stay resumed.
func TestOpeningWithUnknownServerTimeIsNoTransition(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 0)
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{dated("nights", hours(1), hours(2))}})
	r.at(g, server, 0)
	before := g.Status.LastTransition.DeepCopy()
	r.timeUnknown()
	r.at(g, server, hours(1))
	if got := opened(g); got != "False TimeUnknown: Gate stays closed, the API server does not return its time" || !g.Status.LastTransition.At.Equal(&before.At) {
		t.Errorf("%s, the last transition is %+v, was %+v", got, g.Status.LastTransition, before)
	}
	if ready := conditions.Get(g, "Ready"); ready.Status != "False" || ready.Reason != v1alpha1.TimeUnknownReason || !strings.Contains(ready.Message, context.DeadlineExceeded.Error()) {
		t.Errorf("Ready: %+v", ready)
	}
}

// Flux removes the annotation before the server time is known.
func TestOpenRequestOutlivesUnknownServerTime(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 0)
	known := r.ServerTime
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
	r.at(g, server, 0)
	r.timeUnknown()
	g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = start.Format(time.RFC3339)
	if r.at(g, server, time.Second); isOpened(g) {
		t.Error(opened(g))
	}
	delete(g.Annotations, v1alpha1.OpenRequestedAtAnnotation)
	r.ServerTime = known
	if r.at(g, server, 2*time.Second); !isOpened(g) {
		t.Error(opened(g))
	}
}

// Without a transition, targets that users have resumed stay resumed.
func TestOpeningPreventedByDependencyIsNoTransition(t *testing.T) {
	g := newGate(v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, DependsOn: []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "staging"}},
		OpenPeriods: []v1alpha1.Period{dated("hour", hours(1), hours(2))},
	})
	decide := func(ready bool, at time.Time) {
		dependencies := []v1alpha1.DependencyStatus{gate.RecordDependency(g, &g.Spec.DependsOn[0], ready, "broken", at)}
		g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{Dependencies: dependencies}, at).Status(nil)
	}
	decide(true, start)
	before := g.Status.LastTransition.DeepCopy()
	decide(false, start.Add(time.Hour))
	if reason := conditions.GetReason(g, v1alpha1.OpenedCondition); reason != v1alpha1.DependencyNotReadyReason || !g.Status.LastTransition.At.Equal(&before.At) {
		t.Errorf("%s, the last transition is %+v, was %+v", opened(g), g.Status.LastTransition, before)
	}
}

// The controller's clock is past the end of a short close period before the API server's clock is at its start.
func TestClosePeriodIsOverByBothClocks(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 5*time.Second)
	g := newGate(v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(1)+2*time.Second)},
	})
	r.at(g, server, 0)
	for now := hours(1); now < hours(1)+7*time.Second; {
		next := r.at(g, server, now)
		if isOpened(g) || next <= 0 {
			t.Fatalf("after %s: %s, next after %s", now, opened(g), next)
		}
		now += min(next, time.Second)
	}
	if r.at(g, server, hours(1)+7*time.Second); !isOpened(g) {
		t.Error(opened(g))
	}
}

// Two replicas lead in turn. Each continues with the request that the other one has recorded.
func TestPlannedOpeningSurvivesLeaderChanges(t *testing.T) {
	for name, first := range map[string]time.Duration{"the one ahead leads first": 2 * time.Second, "the one behind leads first": -2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			server := clocktesting.NewFakePassiveClock(start)
			replicas := map[time.Duration]*decider{first: newDecider(server, first), -first: newDecider(server, -first)}
			g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
			lead := func(ahead, now time.Duration) {
				server.SetTime(start.Add(now))
				replicas[ahead].look(g, server.Now())
			}
			lead(first, 0)
			g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = start.Add(time.Minute).Format(time.RFC3339)
			lead(first, time.Second)
			delete(g.Annotations, v1alpha1.OpenRequestedAtAnnotation) // as Flux does
			for _, before := range []time.Duration{2 * time.Second, time.Second, time.Millisecond} {
				for _, ahead := range []time.Duration{first, -first} {
					if lead(ahead, time.Minute-before); isOpened(g) {
						t.Errorf("%s before: %s", before, opened(g))
					}
				}
			}
			for _, ahead := range []time.Duration{first, -first} {
				if lead(ahead, time.Minute+2*time.Second); !isOpened(g) {
					t.Errorf("afterwards: %s", opened(g))
				}
			}
		})
	}
}

// The clock of the API server has no fractions of a second. A request of this second that replaces one in force is not a planned request,
// which would end it.
func TestRenewedOpenRequestKeepsGateOpen(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{
		"clocks in step": 0, "the controller ahead": 300 * time.Millisecond, "far ahead": 5 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clocktesting.NewFakePassiveClock(start)
			r := newDecider(server, ahead)
			g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "flux-system", Annotations: map[string]string{}}}
			g.Spec.Default, g.Spec.Window = v1alpha1.StateClosed, duration(time.Hour)
			look := func(at time.Duration) {
				server.SetTime(start.Add(at))
				r.look(g, server.Now())
			}
			g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = start.Format(time.RFC3339)
			look(time.Second)
			again := start.Add(30*time.Minute + 500*time.Millisecond)
			g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = again.Format(time.RFC3339Nano)
			for _, at := range []time.Duration{520, 900, 1100, 2000} {
				if look(30*time.Minute + at*time.Millisecond); !isOpened(g) {
					t.Errorf("%d ms after: %s", at, opened(g))
				}
			}
			if look(89 * time.Minute); !isOpened(g) {
				t.Errorf("not renewed: %s", opened(g))
			}
		})
	}
}
