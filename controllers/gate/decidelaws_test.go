package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// decider decides on Gates in memory, with a clock that is ahead of that of the API server.
type decider struct {
	*Decider
	clock   *clocktesting.FakePassiveClock
	ahead   time.Duration
	asked   int
	metrics *prometheus.Registry
}

// skew returns the metric of the clock skew.
func (r *decider) skew() (value float64) {
	families, _ := r.metrics.Gather()
	for _, family := range families {
		if strings.HasSuffix(family.GetName(), "clock_ahead_seconds") {
			value = family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return value
}

// newDecider returns a replica that reads the time of the API server from a clock.
func newDecider(server *clocktesting.FakePassiveClock, ahead time.Duration) *decider {
	r := &decider{clock: clocktesting.NewFakePassiveClock(start), ahead: ahead, metrics: prometheus.NewRegistry()}
	r.Decider = &Decider{
		Clock: r.clock, Skew: events.MustMakeMetrics(r.metrics).Skew, Dependencies: &view.DependencyReader{},
		ServerTime: func(context.Context) (time.Time, error) {
			r.asked++
			return server.Now().Truncate(time.Second), nil
		},
	}
	return r
}

// look updates the status of a Gate as Reconcile does for a Gate without targets. It returns the delay of the next reconciliation.
func (r *decider) look(g *v1alpha1.Gate, at time.Time, exceptions ...*v1alpha1.GateException) time.Duration {
	r.clock.SetTime(at.Add(r.ahead))
	d := r.Decide(context.Background(), gate.NewSnapshot(g, nil, exceptions...), r.clock.Now())
	g.Status = d.Status(nil)
	return Until(r.clock.Now(), append(d.Rechecks, r.clock.Now().Add(g.GetInterval())))
}

// secondsGate draws a Gate whose periods last some seconds and are some seconds apart.
func secondsGate(t *rapid.T) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "flux-system", Annotations: map[string]string{}}}
	g.Spec.Default = rapid.SampledFrom([]v1alpha1.State{v1alpha1.StateClosed, v1alpha1.StateOpened}).Draw(t, "default")
	if rapid.Bool().Draw(t, "window of requests") {
		g.Spec.Window = duration(time.Duration(rapid.IntRange(1, 8).Draw(t, "seconds")) * time.Second)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "periods") {
		from := time.Duration(rapid.IntRange(0, 30).Draw(t, "from")) * time.Second
		p := dated(fmt.Sprint(i), from, from+time.Duration(rapid.IntRange(1, 8).Draw(t, "long"))*time.Second)
		if g.Spec.Default == v1alpha1.StateClosed && rapid.Bool().Draw(t, "opens") {
			g.Spec.OpenPeriods = append(g.Spec.OpenPeriods, p)
		} else {
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, v1alpha1.ClosePeriod{Period: p,
				Override: rapid.SampledFrom([]v1alpha1.Override{v1alpha1.OverrideAllow, v1alpha1.OverrideDeny}).Draw(t, "manual")})
		}
	}
	return g
}

// request draws a request at about now, in whole seconds. Whether an open request with fractions continues one in force without a gap would
// depend on when it was observed.
func request(t *rapid.T, now time.Time) (annotation, value string) {
	annotation = rapid.SampledFrom([]string{v1alpha1.OpenRequestedAtAnnotation, v1alpha1.CloseRequestedAtAnnotation}).Draw(t, "request")
	at := now.Truncate(time.Second).Add(time.Duration(rapid.IntRange(-2, 6).Draw(t, "at")) * time.Second)
	return annotation, at.Format(time.RFC3339)
}

// Replicas whose clocks are seconds apart, and are set, lead in turn. Whichever leads, a Gate is open only if it is also open in a model
// that handles the same requests by the clock of the API server.
func TestNoReplicaOpensBeforeServerTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := clocktesting.NewFakePassiveClock(start)
		skew := rapid.SampledFrom([]time.Duration{time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 5 * time.Second})
		replicas := []*decider{newDecider(server, skew.Draw(t, "ahead")), newDecider(server, -skew.Draw(t, "behind")), newDecider(server, 0)}
		g := secondsGate(t)
		model := g.DeepCopy()
		areSet := rapid.Bool().Draw(t, "clocks are set")
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			now := server.Now().Add(time.Duration(rapid.IntRange(0, 25).Draw(t, "later")) * 100 * time.Millisecond)
			server.SetTime(now)
			// After a clock was set back, requests that were in force may be planned again.
			if !areSet && rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				annotation, value := request(t, now)
				// If two requests replace each other, the one in force depends on when the first one was observed to be due.
				if last, err := time.Parse(time.RFC3339, g.Annotations[annotation]); err != nil || now.Sub(last).Abs() > 5*time.Second {
					g.Annotations[annotation], model.Annotations[annotation] = value, value
				}
			}
			gate.ApplyRequests(model, ledger.Unstamped, now)
			want := gate.Decide(model, now)
			r := rapid.SampledFrom(replicas).Draw(t, "leader")
			if areSet && rapid.IntRange(0, 4).Draw(t, "set") == 0 { // the clock is set, or the machine was suspended
				r.ahead = rapid.SampledFrom([]time.Duration{-1, 1}).Draw(t, "direction") * skew.Draw(t, "apart")
			}
			was := isOpened(g)
			r.look(g, now)
			late := was && r.ahead < 0 // the close is not due yet by the replica's clock
			if isOpened(g) && !late && want.State == v1alpha1.StateClosed {
				t.Fatalf("step %d, at %s, a replica %s ahead: opened (%s), but %s (%s)\nrequests %+v\nmodel %+v", step, now.Format(time.RFC3339Nano), r.ahead,
					opened(g), want.State, want.Message, g.Status.Requests, model.Status.Requests)
			}
		}
		// When both clocks have passed all planned requests, none was lost.
		server.SetTime(server.Now().Add(2 * time.Minute))
		gate.ApplyRequests(model, ledger.Unstamped, server.Now())
		want := gate.Decide(model, server.Now())
		for _, r := range replicas {
			r.look(g, server.Now())
			if isOpened(g) != (want.State == v1alpha1.StateOpened) {
				t.Fatalf("at last, a replica %s ahead: %s, want %s\nrequests %+v\nmodel %+v", r.ahead, opened(g), want.Message, g.Status.Requests, model.Status.Requests)
			}
		}
	})
}

// The clock of a single controller is set at random between two reconciliations, or stands still.
func TestGateOpensNotBeforeInstantOnLocalClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := secondsGate(t)
		r := newDecider(nil, 0)
		r.ServerTime = nil
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now := start.Add(time.Duration(rapid.IntRange(-5000, 50000).Draw(t, "at")) * time.Millisecond)
			delay := r.look(g, now)
			want := gate.Decide(g, now)
			if isOpened(g) != (want.State == v1alpha1.StateOpened) {
				t.Fatalf("at %s: %s, want %s", now, opened(g), want.Message)
			}
			if delay < time.Millisecond || delay > time.Minute {
				t.Fatalf("looks again after %s", delay)
			}
			woken := gate.Decide(g, now.Add(delay))
			if early := gate.Decide(g, now.Add(delay-1)); early.State != want.State || want.Next != nil && now.Add(delay).After(want.Next.At.Time) {
				t.Fatalf("at %s: looks again after %s, the next edge is %+v", now, delay, want.Next)
			} else if delay < time.Minute && woken.State == want.State && want.Recheck.IsZero() {
				t.Fatalf("at %s: looks again after %s for nothing", now, delay)
			}
		}
	})
}

// A Gate that waits for the other clock opens with it, and sends few requests for the time.
func TestOpeningWaitingForOtherClockIsNotMissed(t *testing.T) {
	for _, ahead := range []time.Duration{
		-2 * time.Second, -time.Millisecond, 0, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 999 * time.Millisecond,
		time.Second, 1500 * time.Millisecond, 2 * time.Second, 10 * time.Second, time.Hour,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			due := start.Add(2 * time.Hour)
			for _, phase := range []time.Duration{0, time.Microsecond, 123456 * time.Microsecond, 999 * time.Millisecond} {
				server := clocktesting.NewFakePassiveClock(start)
				r := newDecider(server, ahead)
				g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: 24 * time.Hour},
					OpenPeriods: []v1alpha1.Period{dated("now", 2*time.Hour, 8*time.Hour)}}}
				now := start.Add(phase)
				for looks := 0; !isOpened(g); looks++ {
					server.SetTime(now)
					now = now.Add(r.look(g, now))
					if r.asked > 25 || looks > 30 {
						t.Fatalf("looked %d times and asked %d times by %s", looks, r.asked, now)
					}
				}
				late := server.Now().Sub(due)
				if most := max(gate.MaxPoll, -ahead); late < 0 || late > most {
					t.Errorf("opened %s late, at most %s", late, most)
				}
				if ahead <= 0 && r.asked != 1 {
					t.Errorf("asked %d times", r.asked)
				}
				if ahead > 0 && ahead < 10*gate.MaxPoll && late > 2*max(ahead, 5*time.Millisecond) {
					t.Errorf("opened %s late with clocks %s apart", late, ahead)
				}
			}
		})
	}
}

func TestEachReadHasItsOpening(t *testing.T) {
	server := clocktesting.NewFakePassiveClock(start)
	r := newDecider(server, 0)
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{
		dated("first", hours(1), hours(2)), dated("second", hours(3), hours(4)), dated("third", hours(4.5), hours(5)),
	}}}
	var asked []int
	for _, at := range []float64{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4.5, 4.6, 5} { // the close at 4 is missed
		server.SetTime(start.Add(hours(at)))
		r.look(g, server.Now())
		asked = append(asked, r.asked)
	}
	if want := []int{0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}
