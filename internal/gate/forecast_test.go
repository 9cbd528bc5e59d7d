package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func notified(leads ...time.Duration) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) {
		s.NotifyBefore = nil
		for _, lead := range leads {
			s.NotifyBefore = append(s.NotifyBefore, v1alpha1.Duration{Duration: lead})
		}
	}
}

// foretold formats the forecast at an instant, and stores it as announced.
func foretold(g *v1alpha1.Gate, now time.Time, exceptions ...*v1alpha1.GateException) string {
	f := gate.NewSnapshot(g, nil, exceptions...).Forecast(now)
	g.Status.Memory.Announced = f.Announced
	var said []string
	for _, a := range f.Canceled {
		said = append(said, fmt.Sprintf("not %s at %s", a.State, a.At.UTC().Format("02 15:04")))
	}
	for _, n := range f.Notices {
		text := fmt.Sprintf("%s at %s in %s", n.State, n.At.UTC().Format("02 15:04"), n.At.Sub(now))
		if !n.Instead.IsZero() {
			text += ", not at " + n.Instead.UTC().Format("02 15:04")
		}
		said = append(said, text)
	}
	next := "never"
	if !f.Next.IsZero() {
		next = f.Next.UTC().Format("02 15:04")
	}
	return strings.Join(append(said, "next "+next), "; ")
}

// frozen has a Gate closed from 18:00 on until 20:00 of the next day.
var frozen = closePeriods(closing(dated("freeze", "2026-11-24T18:00:00Z", "2026-11-25T20:00:00Z"), ""))

// Each step has a time, a change since the previous step, and the expected announcements.
func TestForecast(t *testing.T) {
	type step struct {
		at     string
		change func(*v1alpha1.Gate)
		want   string
	}
	spec := func(edit func(*v1alpha1.GateSpec)) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) { edit(&g.Spec) }
	}
	moved := spec(closePeriods(closing(dated("freeze", "2026-11-24T19:00:00Z", "2026-11-25T20:00:00Z"), "")))
	for name, tc := range map[string]struct {
		gate  *v1alpha1.Gate
		steps []step
	}{
		"nothing is asked for": {opened(frozen), []step{{"24 17:30", nil, "next never"}}},
		"each change at each lead": {opened(frozen, notified(time.Hour, 24*time.Hour)), []step{
			{"23 12:00", nil, "next 23 18:00"},
			{"23 18:00", nil, "closed at 24 18:00 in 24h0m0s; next 24 17:00"},
			{"24 17:00", nil, "closed at 24 18:00 in 1h0m0s; next 24 20:00"},
			{"24 18:00", nil, "next 24 20:00"},
			{"24 20:00", nil, "opened at 25 20:00 in 24h0m0s; next 25 19:00"},
			{"25 19:00", nil, "opened at 25 20:00 in 1h0m0s; next never"},
			{"25 20:00", nil, "next never"},
		}},
		"nobody has looked for a while": {opened(frozen, notified(24*time.Hour, 2*time.Hour, time.Hour)), []step{
			{"24 17:25", nil, "closed at 24 18:00 in 35m0s; next 24 20:00"},
			{"25 20:00", nil, "next never"},
		}},
		"nothing in sight": {closed(notified(time.Hour)), []step{{"23 12:00", nil, "next never"}}},
		"both changes within the lead": {opened(closePeriods(closing(dated("x", "2026-11-24T01:00:00Z", "2026-11-24T02:00:00Z"), "")), notified(24*time.Hour)), []step{
			{"23 12:00", nil, "closed at 24 01:00 in 13h0m0s; opened at 24 02:00 in 14h0m0s; next never"},
		}},
		"it moves": {opened(frozen, notified(24*time.Hour, time.Hour)), []step{
			{"24 12:00", nil, "closed at 24 18:00 in 6h0m0s; next 24 17:00"},
			{"24 13:00", moved, "closed at 24 19:00 in 6h0m0s, not at 24 18:00; next 24 18:00"},
			{"24 18:00", nil, "closed at 24 19:00 in 1h0m0s; next 24 20:00"},
		}},
		"it moves until after the lead": {opened(frozen, notified(7*time.Hour)), []step{
			{"24 12:00", nil, "closed at 24 18:00 in 6h0m0s; next 25 13:00"},
			{"24 12:00", spec(closePeriods(closing(dated("freeze", "2026-11-25T18:00:00Z", "2026-11-25T20:00:00Z"), ""))), "not closed at 24 18:00; next 25 11:00"},
			{"25 11:00", nil, "closed at 25 18:00 in 7h0m0s; next 25 13:00"},
		}},
		"it is called off once, and told again if it comes back": {opened(frozen, notified(24*time.Hour)), []step{
			{"24 12:00", nil, "closed at 24 18:00 in 6h0m0s; next 24 20:00"},
			{"24 13:00", spec(closePeriods()), "not closed at 24 18:00; next never"},
			{"24 13:30", nil, "next never"},
			{"24 14:00", spec(frozen), "closed at 24 18:00 in 4h0m0s; next 24 20:00"},
		}},
		"a lead is added and another taken away": {opened(frozen, notified(24*time.Hour)), []step{
			{"24 12:00", nil, "closed at 24 18:00 in 6h0m0s; next 24 20:00"},
			{"24 13:00", spec(notified(48*time.Hour, 2*time.Hour)), "opened at 25 20:00 in 31h0m0s; next 24 16:00"},
			{"24 16:00", nil, "closed at 24 18:00 in 2h0m0s; next 25 18:00"},
			{"24 16:30", spec(notified()), "next never"},
			{"24 16:31", spec(notified(2 * time.Hour)), "closed at 24 18:00 in 1h29m0s; next 25 18:00"},
		}},
		"somebody closes it before, until long after": {opened(frozen, notified(7*time.Hour, 2*time.Hour)), []step{
			{"24 12:00", nil, "closed at 24 18:00 in 6h0m0s; next 24 16:00"},
			{"24 13:00", func(g *v1alpha1.Gate) { request1(g, shut("2026-11-24T13:00:00Z")) }, "next never"},
		}},
		"somebody opens it for three hours": {closed(window(3*time.Hour), notified(time.Hour)), []step{
			{"24 12:00", func(g *v1alpha1.Gate) { request1(g, open("2026-11-24T12:00:00Z")) }, "next 24 14:00"},
			{"24 14:00", nil, "closed at 24 15:00 in 1h0m0s; next never"},
			{"24 14:30", func(g *v1alpha1.Gate) { request1(g, open("2026-11-24T14:30:00Z")) }, "not closed at 24 15:00; next 24 16:30"},
			{"24 16:30", nil, "closed at 24 17:30 in 1h0m0s; next never"},
		}},
		"the clock of another replica is behind": {opened(frozen, notified(24*time.Hour)), []step{
			{"24 17:59", nil, "closed at 24 18:00 in 1m0s; next 24 20:00"},
			{"24 18:00", nil, "next 24 20:00"},
			{"24 17:59", nil, "next 24 20:00"},
		}},
		"the spec does not compile": {opened(frozen, notified(24*time.Hour)), []step{
			{"24 12:00", nil, "closed at 24 18:00 in 6h0m0s; next 24 20:00"},
			{"24 13:00", func(g *v1alpha1.Gate) { g.Spec.TimeZone = "Nowhere" }, "next never"},
			{"24 14:00", func(g *v1alpha1.Gate) { g.Spec.TimeZone = "" }, "next 24 20:00"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range tc.steps {
				if s.change != nil {
					s.change(tc.gate)
				}
				at := utc("2026-11-" + strings.Replace(s.at, " ", "T", 1) + ":00Z")
				if got := foretold(tc.gate, at); got != s.want {
					t.Errorf("%s\ngot  %s\nwant %s", s.at, got, s.want)
				}
			}
		})
	}
}

// request1 has a Gate accept a request.
func request1(g *v1alpha1.Gate, r request) {
	annotate(g, r.action, r.at)
	gate.ApplyRequests(g, ledger.Unstamped, utc(r.now))
}

func TestExceptionCancelsAnnouncementsThatItOverrides(t *testing.T) {
	g := production(opened(frozen, notified(24*time.Hour)))
	at := utc("2026-11-24T12:00:00Z")
	if got, want := foretold(g, at), "closed at 24 18:00 in 6h0m0s; next 24 20:00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	lifts := exception(valid("2026-11-24T17:00:00Z", "2026-11-24T22:00:00Z"), opensIn(dated("all", "2026-11-24T17:00:00Z", "2026-11-24T22:00:00Z")))
	if got, want := foretold(g, at, lifts), "closed at 24 22:00 in 10h0m0s, not at 24 18:00; next 24 20:00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLeadIsElapsedTime(t *testing.T) {
	// On 25 October 2026 the clocks in Oslo are set back at 03:00, so that the night has an hour more.
	g := closed(windows(weekly("nights", "22:00", "05:00")), notified(24*time.Hour))
	g.Spec.TimeZone = "Europe/Oslo"
	at := utc("2026-10-24T03:00:00Z") // 05:00
	g.Status.Memory.Announced = gate.NewSnapshot(g, nil).Forecast(at).Announced
	f := gate.NewSnapshot(g, nil).Forecast(at)
	if want := utc("2026-10-24T04:00:00Z"); !f.Next.Equal(want) {
		t.Fatalf("the next is told at %s, want %s", f.Next, want)
	}
	if got, want := foretold(g, f.Next), "closed at 25 04:00 in 24h0m0s; next 24 21:00"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSoonestChangesAreAnnouncedAndStatusIsBounded(t *testing.T) {
	g := opened(notified(24 * time.Hour))
	for i, want := range []int{32, 48, 58, v1alpha1.MaxAnnounced} {
		minute := 2*i + 1
		g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, closing(cron(fmt.Sprintf("p%d", i), fmt.Sprintf("%d-59/10 * * * *", minute), time.Minute), ""))
		f := gate.NewSnapshot(g, nil).Forecast(noon)
		if len(f.Canceled) > 0 || len(f.Announced) != want || len(f.Notices) != want-len(g.Status.Memory.Announced) {
			t.Errorf("%d: %d announced, want %d; %d told, called off %v", i, len(f.Announced), want, len(f.Notices), f.Canceled)
		}
		for _, a := range g.Status.Memory.Announced {
			if !slices.Contains(f.Announced, a) {
				t.Errorf("%d: %v is forgotten", i, a)
			}
		}
		g.Status.Memory.Announced = f.Announced
	}
}

func TestChangeWithoutSpaceIsAnnouncedOncePastChangeIsDropped(t *testing.T) {
	g := opened(notified(time.Hour), closePeriods(closing(cron("often", "*/2 * * * *", time.Minute), "")))
	now, over := utc("2026-11-23T12:00:50Z"), utc("2026-11-23T11:59:58Z")
	announce := func(at time.Time, state v1alpha1.State) {
		g.Status.Memory.Announced = append(g.Status.Memory.Announced, v1alpha1.Announcement{At: metav1.NewTime(at), State: state, Before: v1alpha1.Duration{Duration: time.Hour}})
	}
	announce(over, v1alpha1.StateClosed)
	for i := range v1alpha1.MaxAnnounced - 1 { // all but the opening at 12:01
		announce(noon.Add(time.Duration(i+2)*time.Minute), []v1alpha1.State{v1alpha1.StateClosed, v1alpha1.StateOpened}[i%2])
	}
	f := gate.NewSnapshot(g, nil).Forecast(now)
	if want := over.Add(time.Minute); !f.IsEmpty() || !f.Next.Equal(want) {
		t.Fatalf("the next forecast is at %s, want %s, and says %v, %v", f.Next, want, f.Notices, f.Canceled)
	}
	if f := gate.NewSnapshot(g, nil).Forecast(f.Next); len(f.Notices) != 1 || !f.Notices[0].At.Time.Equal(noon.Add(time.Minute)) {
		t.Errorf("got notices %+v, want the opening at 12:01", f.Notices)
	}
}

func TestGatesWithoutNoticesHaveNoCost(t *testing.T) {
	g := opened(frozen)
	if n := testing.AllocsPerRun(100, func() { gate.NewSnapshot(g, nil).Forecast(noon) }); n > 0 {
		t.Errorf("%f allocations", n)
	}
}
