package gate_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

const (
	isOpened = v1alpha1.StateOpened
	isClosed = v1alpha1.StateClosed
)

// next is the expected next transition, the zero value if there is none.
type next struct {
	at     string
	state  v1alpha1.State
	reason string
	by     string
}

func nextOf(d gate.Decision) next {
	if d.Next == nil {
		return next{}
	}
	return next{stamp(d.Next.At.Time), d.Next.State, d.Next.Reason, d.Next.DecidedBy()}
}

// freeze is a close period around noon.
func freeze(mode v1alpha1.Override) func(*v1alpha1.GateSpec) {
	return closePeriods(closing(dated("freeze", "2026-11-23T11:00:00Z", "2026-11-23T13:00:00Z"), mode))
}

func between(notBefore, notAfter string) func(*v1alpha1.GateSpec) {
	return func(s *v1alpha1.GateSpec) {
		if notBefore != "" {
			s.NotBefore = instant(notBefore)
		}
		if notAfter != "" {
			s.NotAfter = instant(notAfter)
		}
	}
}

func TestDecisionTable(t *testing.T) {
	day := windows(weekly("days", "08:00", "16:00"))
	night := windows(weekly("nights", "22:00", "05:00"))
	for name, tc := range map[string]struct {
		gate            *v1alpha1.Gate
		state           v1alpha1.State
		reason, message string
		next            next
	}{
		"closed by default": {
			closed(), isClosed, "Default", "Gate closed by default", next{},
		},
		"opened by default": {
			opened(), isOpened, "Default", "Gate opened by default", next{},
		},
		"an open request for a window": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z")),
			isOpened, "OpenRequested", "Gate scheduled for closing at 2026-11-23T12:30:00Z, open requested at 2026-11-23T11:30:00Z", next{"2026-11-23T12:30:00Z", isClosed, "Default", ""},
		},
		"an open request without a window": {
			accepted(t, closed(), open("2026-11-23T11:30:00Z")), isOpened, "OpenRequested", "Gate open requested at 2026-11-23T11:30:00Z", next{},
		},
		"an open request that is over": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:00:00Z")), isClosed, "Default", "Gate closed by default", next{},
		},
		"a close request for a window": {
			accepted(t, opened(window(24*time.Hour)), shut("2026-11-23T11:30:00Z")),
			isClosed, "CloseRequested", "Gate scheduled for opening at 2026-11-24T11:30:00Z, close requested at 2026-11-23T11:30:00Z", next{"2026-11-24T11:30:00Z", isOpened, "Default", ""},
		},
		"a close request without a window": {
			accepted(t, opened(), shut("2026-11-23T11:30:00Z")), isClosed, "CloseRequested", "Gate close requested at 2026-11-23T11:30:00Z", next{},
		},
		"a close request that ends an open request": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z"), shut("2026-11-23T11:40:00Z")),
			isClosed, "CloseRequested", "Gate close requested at 2026-11-23T11:40:00Z", next{},
		},
		"an open request that ends before a planned close": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z"), shut("2026-11-23T15:00:00Z").seen("2026-11-23T11:31:00Z")),
			isOpened, "OpenRequested", "Gate scheduled for closing at 2026-11-23T12:30:00Z, open requested at 2026-11-23T11:30:00Z", next{"2026-11-23T12:30:00Z", isClosed, "Default", ""},
		},
		"a close request that ends before a planned open": {
			accepted(t, opened(window(time.Hour)), shut("2026-11-23T11:30:00Z"), open("2026-11-23T15:00:00Z").seen("2026-11-23T11:31:00Z")),
			isClosed, "CloseRequested", "Gate scheduled for opening at 2026-11-23T12:30:00Z, close requested at 2026-11-23T11:30:00Z", next{"2026-11-23T12:30:00Z", isOpened, "Default", ""},
		},
		"a planned close that ends an open request": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z"), shut("2026-11-23T12:10:00Z").seen("2026-11-23T11:31:00Z")),
			isOpened, "OpenRequested", "Gate scheduled for closing at 2026-11-23T12:10:00Z, open requested at 2026-11-23T11:30:00Z", next{"2026-11-23T12:10:00Z", isClosed, "CloseRequested", ""},
		},
		"a planned release": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T18:00:00Z").seen("2026-11-23T11:00:00Z")),
			isClosed, "Default", "Gate closed by default, scheduled for opening at 2026-11-23T18:00:00Z", next{"2026-11-23T18:00:00Z", isOpened, "OpenRequested", ""},
		},
		"a close request wins over a window that is open": {
			accepted(t, closed(day), shut("2026-11-23T11:30:00Z")), isClosed, "CloseRequested", "Gate close requested at 2026-11-23T11:30:00Z", next{},
		},
		"a hard freeze wins over an open request": {
			accepted(t, closed(freeze("Deny")), open("2026-11-23T11:30:00Z")), isClosed, "ClosePeriod",
			"Gate closed by close period 'freeze', scheduled for opening at 2026-11-23T13:00:00Z", next{"2026-11-23T13:00:00Z", isOpened, "OpenRequested", ""},
		},
		"an open request lifts a close period": {
			accepted(t, opened(freeze("Allow")), open("2026-11-23T11:30:00Z")), isOpened, "OpenRequested", "Gate open requested at 2026-11-23T11:30:00Z", next{},
		},
		"override is Allow unless it says otherwise": {
			accepted(t, opened(freeze("")), open("2026-11-23T11:30:00Z")), isOpened, "OpenRequested", "Gate open requested at 2026-11-23T11:30:00Z", next{},
		},
		"a close request wins over a hard freeze": {
			accepted(t, opened(freeze("Deny")), shut("2026-11-23T11:30:00Z")), isClosed, "CloseRequested", "Gate close requested at 2026-11-23T11:30:00Z", next{},
		},
		"before notBefore": {
			opened(between("2026-12-01T00:00:00Z", "")), isClosed, "NotYetActive",
			"Gate closed before 2026-12-01T00:00:00Z, scheduled for opening at 2026-12-01T00:00:00Z", next{"2026-12-01T00:00:00Z", isOpened, "Default", ""},
		},
		"before notBefore of a gate closed by default": {
			closed(between("2026-12-01T00:00:00Z", "")), isClosed, "NotYetActive", "Gate closed before 2026-12-01T00:00:00Z", next{},
		},
		"at notBefore itself": {
			opened(between("2026-11-23T12:00:00Z", "")), isOpened, "Default", "Gate opened by default", next{},
		},
		"an open request before notBefore": {
			accepted(t, closed(between("2026-12-01T00:00:00Z", "")), open("2026-11-23T11:30:00Z")), isOpened, "OpenRequested", "Gate open requested at 2026-11-23T11:30:00Z", next{},
		},
		"before notAfter": {
			opened(between("", "2026-11-23T12:00:01Z")), isOpened, "Default",
			"Gate opened by default, scheduled for closing at 2026-11-23T12:00:01Z", next{"2026-11-23T12:00:01Z", isClosed, "Expired", ""},
		},
		"at notAfter itself": {
			opened(between("", "2026-11-23T12:00:00Z")), isClosed, "Expired", "Gate closed since 2026-11-23T12:00:00Z", next{},
		},
		"an open request after notAfter": {
			accepted(t, closed(window(time.Hour), between("", "2026-11-01T00:00:00Z")), open("2026-11-23T11:30:00Z")), isOpened, "OpenRequested",
			"Gate scheduled for closing at 2026-11-23T12:30:00Z, open requested at 2026-11-23T11:30:00Z", next{"2026-11-23T12:30:00Z", isClosed, "Expired", ""},
		},
		"windows of an expired gate": {
			closed(day, between("", "2026-11-01T00:00:00Z")), isClosed, "Expired", "Gate closed since 2026-11-01T00:00:00Z", next{},
		},
		"in a window": {
			closed(day), isOpened, "OpenPeriod",
			"Gate opened by open period 'days', scheduled for closing at 2026-11-23T16:00:00Z", next{"2026-11-23T16:00:00Z", isClosed, "OutsideOpenPeriods", ""},
		},
		"outside the openPeriods": {
			closed(night), isClosed, "OutsideOpenPeriods",
			"Gate closed outside its open periods, scheduled for opening at 2026-11-23T22:00:00Z by 'nights'", next{"2026-11-23T22:00:00Z", isOpened, "OpenPeriod", "nights"},
		},
		"in a close period that wins over a window": {
			closed(day, freeze("")), isClosed, "ClosePeriod",
			"Gate closed by close period 'freeze', scheduled for opening at 2026-11-23T13:00:00Z by 'days'", next{"2026-11-23T13:00:00Z", isOpened, "OpenPeriod", "days"},
		},
		"outside the close periods": {
			opened(closePeriods(closing(cron("friday", "0 0 * * FRI", 24*time.Hour), ""))), isOpened, "OutsideClosePeriods",
			"Gate opened outside its close periods, scheduled for closing at 2026-11-27T00:00:00Z by 'friday'", next{"2026-11-27T00:00:00Z", isClosed, "ClosePeriod", "friday"},
		},
		"a close period of a gate that is closed anyway": {
			closed(freeze("")), isClosed, "ClosePeriod", "Gate closed by close period 'freeze'", next{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(tc.gate, noon)
			if d.State != tc.state || d.Reason != tc.reason {
				t.Errorf("got %s, %s; want %s, %s", d.State, d.Reason, tc.state, tc.reason)
			}
			if d.Message != tc.message {
				t.Errorf("got  message %q\nwant message %q", d.Message, tc.message)
			}
			if got := nextOf(d); got != tc.next {
				t.Errorf("got next %v, want %v", got, tc.next)
			}
		})
	}
}

func TestDecisionChangesAtNextTransition(t *testing.T) {
	for name, g := range map[string]*v1alpha1.Gate{
		"window":         closed(windows(weekly("days", "08:00", "16:00"))),
		"request":        accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z")),
		"planned":        accepted(t, closed(window(time.Hour)), open("2026-11-23T18:00:00Z").seen("2026-11-23T11:00:00Z")),
		"freeze":         opened(freeze("Deny")),
		"notAfter":       opened(between("", "2026-11-23T12:00:01Z")),
		"local midnight": opened(func(s *v1alpha1.GateSpec) { s.TimeZone = "Asia/Tokyo" }, closePeriods(closing(cron("tuesday", "0 0 * * TUE", time.Hour), ""))),
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(g, noon)
			at := d.Next.At.Time
			if before := gate.Decide(g, at.Add(-time.Nanosecond)); before.State != d.State {
				t.Errorf("a nanosecond before %s the gate is %s already", at, before.State)
			}
			if then := gate.Decide(g, at); then.State != d.Next.State || then.Reason != d.Next.Reason {
				t.Errorf("at %s the gate is %s (%s), want %s (%s)", at, then.State, then.Reason, d.Next.State, d.Next.Reason)
			}
		})
	}
}

func TestRequestIsReportedInRFCFields(t *testing.T) {
	for name, tc := range map[string]struct {
		gate                   *v1alpha1.Gate
		requestedAt, resetting string
	}{
		"no request": {gate: closed(window(time.Hour))},
		"opened for the window": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z")), "2026-11-23T11:30:00Z", "2026-11-23T12:30:00Z"},
		"closed for the window": {
			accepted(t, opened(window(24*time.Hour)), shut("2026-11-23T11:30:00Z")), "2026-11-23T11:30:00Z", "2026-11-24T11:30:00Z"},
		"closed ahead of the schedule": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T11:30:00Z"), shut("2026-11-23T11:40:00Z")), "2026-11-23T11:40:00Z", "2026-11-23T11:40:00Z"},
		"closed ahead of no schedule, without a window": {
			accepted(t, closed(), open("2026-11-23T11:30:00Z"), shut("2026-11-23T11:40:00Z")), "2026-11-23T11:40:00Z", "2026-11-23T11:40:00Z"},
		"opened ahead of the schedule": {
			accepted(t, opened(window(time.Hour)), shut("2026-11-23T11:30:00Z"), open("2026-11-23T11:40:00Z")), "2026-11-23T11:40:00Z", "2026-11-23T11:40:00Z"},
		"closed after the open request was over": {
			accepted(t, closed(window(time.Hour)), open("2026-11-23T10:00:00Z"), shut("2026-11-23T11:30:00Z")), "2026-11-23T11:30:00Z", "2026-11-23T12:30:00Z"},
		"closed ahead, but a window would be open": {
			accepted(t, closed(window(time.Hour), windows(weekly("days", "08:00", "16:00"))), open("2026-11-23T11:30:00Z"), shut("2026-11-23T11:40:00Z")), "2026-11-23T11:40:00Z", "2026-11-23T12:40:00Z"},
		"until the opposite request": {
			gate: accepted(t, closed(), open("2026-11-23T11:30:00Z")), requestedAt: "2026-11-23T11:30:00Z"},
		"planned, so that none is in force": {
			gate: accepted(t, closed(window(time.Hour)), open("2026-11-23T18:00:00Z").seen("2026-11-23T11:00:00Z"))},
		"over, the last one": {
			accepted(t, closed(window(time.Hour)), open("2026-11-22T11:30:00Z")), "2026-11-22T11:30:00Z", "2026-11-22T12:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(tc.gate, noon)
			requestedAt, resetting := "", ""
			if d.RequestedAt != nil {
				requestedAt = stamp(d.RequestedAt.Time)
			}
			if d.ResetToDefaultAt != nil {
				resetting = stamp(d.ResetToDefaultAt.Time)
			}
			if requestedAt != tc.requestedAt || resetting != tc.resetting {
				t.Errorf("got  %q, %q\nwant %q, %q", requestedAt, resetting, tc.requestedAt, tc.resetting)
			}
		})
	}
}

func TestRecheckIsAtChangeOfReason(t *testing.T) {
	g := closed(freeze(""))
	d := gate.Decide(g, noon)
	if d.Next != nil || stamp(d.Recheck) != "2026-11-23T13:00:00Z" {
		t.Errorf("got next %v, recheck %s", d.Next, d.Recheck)
	}
	if then := gate.Decide(g, d.Recheck); then.Reason != "Default" || !then.Recheck.IsZero() {
		t.Errorf("then %s, recheck %s", then.Reason, then.Recheck)
	}
}

func TestIntervalsAgreeWithDecide(t *testing.T) {
	g := accepted(t, closed(window(time.Hour), windows(weekly("days", "08:00", "16:00")), freeze("Deny")), open("2026-11-23T06:00:00Z"))
	from, until := utc("2026-11-23T00:00:00Z"), utc("2026-11-24T00:00:00Z")
	intervals, errs := gate.Intervals(g, from, until)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var states []string
	for i := range intervals {
		states = append(states, i.State.String()+" "+i.From.Format("15:04")+" "+string(i.Reason))
		d := gate.Decide(g, i.From)
		if string(d.State) != i.State.String() || d.Reason != string(i.Reason) {
			t.Errorf("at %s the gate is %s (%s), the interval says %s (%s)", i.From, d.State, d.Reason, i.State, i.Reason)
		}
	}
	want := []string{
		"closed 00:00 OutsideOpenPeriods", "opened 06:00 OpenRequested", "closed 07:00 OutsideOpenPeriods", "opened 08:00 OpenPeriod",
		"closed 11:00 ClosePeriod", "opened 13:00 OpenPeriod", "closed 16:00 OutsideOpenPeriods",
	}
	if len(states) != len(want) {
		t.Fatalf("got %q", states)
	}
	for i := range want {
		if states[i] != want[i] {
			t.Errorf("got %q, want %q", states[i], want[i])
		}
	}
	if _, errs := gate.Intervals(closed(window(-1)), from, until); len(errs) != 1 {
		t.Errorf("an invalid gate has intervals: %v", errs)
	}
}
