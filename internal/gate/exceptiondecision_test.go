package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

func TestGateWithException(t *testing.T) {
	inForce := ", exception 'x' is in force until 2026-11-23T13:00:00Z"
	reopens := next{"2026-11-23T13:00:00Z", isOpened, "OpenPeriod", "midday"}
	closes := next{"2026-11-23T13:00:00Z", isClosed, "Default", ""}
	opening := ", scheduled for opening at 2026-11-23T13:00:00Z by 'midday'"
	for name, tc := range map[string]struct {
		gate            *v1alpha1.Gate
		exception       *v1alpha1.GateException
		state           v1alpha1.State
		reason, message string
		next            next
	}{
		"open in its period": {closed(), exception(opensIn(midday)), isOpened, "Exception",
			"Gate opened by exception 'x', scheduled for closing at 2026-11-23T13:00:00Z", closes},
		"open outside its periods": {closed(), exception(opensIn(weekly("a", "12:30", "12:45"))), isClosed, "Default",
			"Gate closed by default, scheduled for opening at 2026-11-23T12:30:00Z by 'x'" + inForce, next{"2026-11-23T12:30:00Z", isOpened, "Exception", "x"}},
		"open while a period of the gate decides": {closed(windows(midday)), exception(opensIn(weekly("a", "20:00", "21:00"))), isOpened, "OpenPeriod",
			"Gate opened by open period 'midday', scheduled for closing at 2026-11-23T14:00:00Z" + inForce, next{"2026-11-23T14:00:00Z", isClosed, "OutsideOpenPeriods", ""}},
		"open wins over a close period": {closed(freeze("")), exception(opensIn(midday)), isOpened, "Exception",
			"Gate opened by exception 'x', scheduled for closing at 2026-11-23T13:00:00Z", closes},
		"close a gate opened by default": {opened(), exception(closesIn(midday)), isClosed, "Exception",
			"Gate closed by exception 'x', scheduled for opening at 2026-11-23T13:00:00Z", next{"2026-11-23T13:00:00Z", isOpened, "Default", ""}},
		"close in its period": {closed(windows(midday)), exception(closesIn(midday)), isClosed, "Exception", "Gate closed by exception 'x'" + opening, reopens},
		"close with a lead": {closed(windows(weekly("late", "12:15", "14:00"))), exception(closesIn(weekly("a", "12:30", "12:45")), lead(30*time.Minute)), isClosed, "OutsideOpenPeriods",
			"Gate closed outside its open periods, scheduled for opening at 2026-11-23T12:45:00Z by 'late'" + inForce, next{"2026-11-23T12:45:00Z", isOpened, "OpenPeriod", "late"}},
		"open a gate opened by default": {opened(freeze("")), exception(opensIn(midday)), isOpened, "Exception",
			"Gate opened by exception 'x'", next{}},
		"a default without periods": {closed(windows(midday)), exception(byDefault(isClosed)), isClosed, "Exception", "Gate closed by exception 'x'" + opening, reopens},
		"before it is valid": {closed(windows(midday)), exception(byDefault(isClosed), valid("2026-11-23T12:00:01Z", "2026-11-23T13:00:00Z")), isOpened, "OpenPeriod",
			"Gate opened by open period 'midday', scheduled for closing at 2026-11-23T12:00:01Z by 'x'", next{"2026-11-23T12:00:01Z", isClosed, "Exception", "x"}},
		"a hard freeze is above it": {closed(freeze("Deny")), exception(opensIn(midday)), isClosed, "ClosePeriod",
			"Gate closed by close period 'freeze'" + inForce, next{}},
		"a close request is above it": {accepted(t, closed(), shut("2026-11-23T11:30:00Z")), exception(opensIn(midday)), isClosed, "CloseRequested",
			"Gate close requested at 2026-11-23T11:30:00Z" + inForce, next{}},
		"an open request is above it": {accepted(t, closed(), open("2026-11-23T11:30:00Z")), exception(byDefault(isClosed)), isOpened, "OpenRequested",
			"Gate open requested at 2026-11-23T11:30:00Z" + inForce, next{}},
		"notBefore is above it": {closed(between("2026-12-01T00:00:00Z", "")), exception(opensIn(midday)), isClosed, "NotYetActive",
			"Gate closed before 2026-12-01T00:00:00Z" + inForce, next{}},
		"notAfter is above it": {closed(between("", "2026-11-01T00:00:00Z")), exception(opensIn(midday)), isClosed, "Expired",
			"Gate closed since 2026-11-01T00:00:00Z" + inForce, next{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(production(tc.gate), noon, tc.exception)
			if d.State != tc.state || d.Reason != tc.reason || d.Message != tc.message {
				t.Errorf("got  %s, %s, %q\nwant %s, %s, %q", d.State, d.Reason, d.Message, tc.state, tc.reason, tc.message)
			}
			if got := nextOf(d); got != tc.next {
				t.Errorf("got next %v, want %v", got, tc.next)
			}
		})
	}
}

func TestGateIsRequeuedExactlyAtEdgesOfException(t *testing.T) {
	g := production(closed())
	// Its period is on another day: nothing but the message changes.
	e := exception(opensIn(weekly("a", "08:00", "09:00")))
	for now, want := range map[string]string{
		"2026-11-23T10:00:00Z":   "2026-11-23T11:00:00Z",
		"2026-11-23T10:59:59.5Z": "2026-11-23T11:00:00Z",
		"2026-11-23T11:00:00Z":   "2026-11-23T13:00:00Z",
		"2026-11-23T12:59:59.5Z": "2026-11-23T13:00:00Z",
		"2026-11-23T13:00:00Z":   "",
	} {
		got := ""
		if d := gate.Decide(g, utc(now), e); !d.Recheck.IsZero() {
			got = stamp(d.Recheck)
		}
		if got != want {
			t.Errorf("at %s: recheck at %q, want %q", now, got, want)
		}
	}
}

func TestInvalidExceptionFailsClosed(t *testing.T) {
	bad := cron("a", "@every 1h", time.Hour)
	opens, closes, shuts := opensIn(bad), closesIn(bad), all(opensIn(bad), byDefault(isClosed))
	for name, tc := range map[string]struct {
		gate *v1alpha1.Gate
		edit edit
		want v1alpha1.State
	}{
		"open periods, closed by default":                         {closed(), opens, isClosed},
		"open periods, closed by default, in a period":            {closed(windows(midday)), opens, isOpened},
		"open periods, opened by default":                         {opened(), opens, isOpened},
		"open periods, opened by default, in a close period":      {opened(freeze("")), opens, isClosed},
		"opened in the exception, in a close period":              {opened(freeze("")), all(opens, byDefault(isOpened)), isClosed},
		"close periods, closed by default, in a period":           {closed(windows(midday)), closes, isClosed},
		"close periods, opened by default":                        {opened(), closes, isClosed},
		"closed in the exception, in a period":                    {closed(windows(midday)), shuts, isClosed},
		"closed in the exception, opened by default":              {opened(), shuts, isClosed},
		"no known default, closed by default, in a period":        {closed(windows(midday)), byDefault("open"), isClosed},
		"neither periods nor a default, opened by default":        {opened(), all(), isClosed},
		"closed in the exception, opened by request all the same": {accepted(t, closed(), open("2026-11-23T11:30:00Z")), shuts, isOpened},
	} {
		t.Run(name, func(t *testing.T) {
			g, e := production(tc.gate), exception(tc.edit)
			d := gate.Decide(g, noon, e)
			if d.State != tc.want || !strings.HasSuffix(d.Message, ", exception 'x' is invalid") || len(d.Errors) > 0 {
				t.Errorf("%s, %q, %v", d.State, d.Message, d.Errors)
			}
			for _, at := range []string{"2026-11-23T10:59:59Z", "2026-11-23T13:00:00Z"} {
				if with, without := gate.Decide(g, utc(at), e), gate.Decide(g, utc(at)); with.State != without.State || with.Reason != without.Reason {
					t.Errorf("at %s, outside its validity: %s", at, with.Message)
				}
			}
		})
	}
}

func TestDecisionsOnExceptions(t *testing.T) {
	newer := exception(byDefault(isOpened), called("newer"), created("2026-11-02T00:00:00Z"), valid("2026-11-23T11:30:00Z", "2026-11-23T12:30:00Z"))
	newest := exception(byDefault(isOpened), called("newest"), created("2026-11-03T00:00:00Z"), valid("2026-11-23T12:45:00Z", "2026-11-23T12:50:00Z"))
	older := exception(byDefault(isOpened), called("older"), created("2026-10-02T00:00:00Z"))
	wins := "Exception 'newer' of gate 'flux-system/production' is newer and takes precedence from 2026-11-23T11:30:00Z until 2026-11-23T12:30:00Z"
	winsLater := "Exception 'newest' of gate 'flux-system/production' is newer and takes precedence from 2026-11-23T12:45:00Z until 2026-11-23T12:50:00Z"
	newerBroken, brokenClose := newer.DeepCopy(), newer.DeepCopy()
	broken(newerBroken)
	all(broken, closesIn(midday))(brokenClose)
	lets := "Exception 'newer' of gate 'flux-system/production' is newer, but is invalid or exceeds the limit: from 2026-11-23T11:30:00Z until 2026-11-23T12:30:00Z, this exception closes the gate, but does not open it"
	active := "Exception applies to gate 'flux-system/production' until 2026-11-23T13:00:00Z"
	const pending, inForce, over = "Pending", "Active", "Expired"
	for name, tc := range map[string]struct {
		at         string
		gate       *v1alpha1.Gate
		edit       edit
		others     []*v1alpha1.GateException
		state      string
		reason     string
		message    string
		overlapped string
		recheck    string
	}{
		"before validFrom": {at: "2026-11-23T10:59:59.9Z", gate: closed(), state: pending, reason: "Pending", recheck: "2026-11-23T11:00:00Z",
			message: "Exception applies to gate 'flux-system/production' from 2026-11-23T11:00:00Z until 2026-11-23T13:00:00Z"},
		"at validFrom":          {at: "2026-11-23T11:00:00Z", gate: closed(), state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z"},
		"just before the end":   {at: "2026-11-23T12:59:59.9Z", gate: closed(), state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z"},
		"at validUntil":         {at: "2026-11-23T13:00:00Z", gate: closed(), state: over, reason: "Expired", message: "Exception expired at 2026-11-23T13:00:00Z"},
		"expired without gate":  {at: "2026-11-24T13:00:00Z", state: over, reason: "Expired", message: "Exception expired at 2026-11-23T13:00:00Z"},
		"while it is deleted":   {at: "2026-11-23T12:00:00Z", gate: closed(), edit: deleted, state: over, reason: "Expired", message: "Exception is being deleted"},
		"a gate does not exist": {at: "2026-11-23T12:00:00Z", state: pending, reason: "GateNotFound", message: "Gate 'flux-system/production' does not exist; the exception applies as soon as it does", recheck: "2026-11-23T13:00:00Z"},
		"nobody has approved it": {at: "2026-11-23T12:00:00Z", gate: asking(closed(), 2), edit: written("mallory"), state: pending, reason: "WaitingApproval", recheck: "2026-11-23T13:00:00Z",
			message: "Exception waits for approval: gate 'flux-system/production' requires 2 approvals, 0 given; its authors cannot approve it: mallory"},
		"one of two has approved it": {at: "2026-11-23T12:00:00Z", gate: asking(closed(), 2), edit: all(written("mallory", "trudy"), by1("alice")), state: pending, reason: "WaitingApproval", recheck: "2026-11-23T13:00:00Z",
			message: "Exception waits for approval: gate 'flux-system/production' requires 2 approvals, 1 given by alice; its authors cannot approve it: mallory, trudy"},
		"all have approved it": {at: "2026-11-23T12:00:00Z", gate: asking(closed(), 1), edit: all(written("mallory"), by1("alice")), state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z"},
		"its authors are unknown": {at: "2026-11-23T12:00:00Z", gate: asking(closed(), 2), edit: by1("alice"), state: pending, reason: "WaitingApproval", recheck: "2026-11-23T13:00:00Z",
			message: "Exception cannot be approved: its authors are unknown, because it was created without config/policies, and gate 'flux-system/production' requires 2 approvals; create it again"},
		"a newer one applies": {at: "2026-11-23T12:00:00Z", gate: closed(), others: []*v1alpha1.GateException{newest, newer, older},
			state: pending, reason: "Overlapped", message: wins, overlapped: wins, recheck: "2026-11-23T12:30:00Z"},
		"a newer one that only closes": {at: "2026-11-23T12:00:00Z", gate: asking(closed(), 1), edit: all(written("mallory"), by1("alice")), others: []*v1alpha1.GateException{
			exception(closesIn(midday), called("y"), created("2026-11-02T00:00:00Z")),
		}, state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z"},
		"it only closes and is older": {at: "2026-11-23T12:00:00Z", gate: closed(), edit: all(byDefault(""), closesIn(midday)), others: []*v1alpha1.GateException{newer},
			state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T12:30:00Z"},
		"it keeps the gate closed and is older": {at: "2026-11-23T12:00:00Z", gate: closed(), edit: byDefault(isClosed), others: []*v1alpha1.GateException{newer},
			state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T12:30:00Z"},
		"it may close, and a newer one is broken": {at: "2026-11-23T12:00:00Z", gate: closed(), edit: closesIn(midday), others: []*v1alpha1.GateException{newerBroken},
			state: inForce, reason: "InForce", message: active, overlapped: lets, recheck: "2026-11-23T12:30:00Z"},
		"it only opens, and a newer one is broken": {at: "2026-11-23T12:00:00Z", gate: closed(), others: []*v1alpha1.GateException{newerBroken},
			state: pending, reason: "Overlapped", message: wins, overlapped: wins, recheck: "2026-11-23T12:30:00Z"},
		"it may close, and a newer one is broken that may close": {at: "2026-11-23T12:00:00Z", gate: closed(), edit: closesIn(midday),
			others: []*v1alpha1.GateException{brokenClose}, state: pending, reason: "Overlapped", message: wins, overlapped: wins, recheck: "2026-11-23T12:30:00Z"},
		"it only closes and is newer": {at: "2026-11-23T12:00:00Z", gate: asking(closed(), 1), edit: all(func(e *v1alpha1.GateException) { e.Spec.Default = "" }, closesIn(midday)), others: []*v1alpha1.GateException{older},
			state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z"},
		"a newer one will apply": {at: "2026-11-23T12:30:00Z", gate: closed(), others: []*v1alpha1.GateException{newest, newer, older},
			state: inForce, reason: "InForce", message: active, overlapped: winsLater, recheck: "2026-11-23T12:45:00Z"},
		"a newer one begins when it ends": {at: "2026-11-23T12:00:00Z", gate: closed(), state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z",
			others: []*v1alpha1.GateException{exception(byDefault(isOpened), called("y"), created("2026-11-02T00:00:00Z"), valid("2026-11-23T13:00:00Z", "2026-11-23T14:00:00Z"))}},
		"a newer one ended when it began": {at: "2026-11-23T10:30:00Z", gate: closed(), state: pending, reason: "Pending", recheck: "2026-11-23T11:00:00Z",
			message: "Exception applies to gate 'flux-system/production' from 2026-11-23T11:00:00Z until 2026-11-23T13:00:00Z",
			others:  []*v1alpha1.GateException{exception(byDefault(isOpened), called("y"), created("2026-11-02T00:00:00Z"), valid("2026-11-23T10:00:00Z", "2026-11-23T11:00:00Z"))}},
		"a newer one is over": {at: "2026-11-23T12:40:00Z", gate: closed(), others: []*v1alpha1.GateException{newer},
			state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z"},
		"a newer one that is not approved": {at: "2026-11-23T12:00:00Z", gate: asking(closed(), 1), edit: all(written("mallory"), by1("alice")),
			others: []*v1alpha1.GateException{newer}, state: inForce, reason: "InForce", message: active, recheck: "2026-11-23T13:00:00Z"},
		"an invalid one": {at: "2026-11-23T12:00:00Z", gate: closed(), edit: broken, state: inForce, reason: "InvalidSpec", recheck: "2026-11-23T13:00:00Z",
			message: "Exception is invalid: from 2026-11-23T11:00:00Z until 2026-11-23T13:00:00Z it does not open gate 'flux-system/production', and keeps it closed if a valid version could close it: spec.openPeriods[0].schedule: "},
		"an invalid one that is overlapped": {at: "2026-11-23T12:00:00Z", gate: closed(), edit: broken, others: []*v1alpha1.GateException{newer}, state: pending, reason: "Overlapped",
			message: wins, overlapped: wins, recheck: "2026-11-23T12:30:00Z"},
		"the gate is suspended": {at: "2026-11-23T12:00:00Z", gate: closed(func(s *v1alpha1.GateSpec) { s.Suspend = true }), state: pending, reason: "GateNotReady",
			message: "Gate 'flux-system/production' is suspended and keeps its state, so exceptions have no effect", recheck: "2026-11-23T13:00:00Z"},
		"the gate is invalid": {at: "2026-11-23T12:00:00Z", gate: closed(window(-1)), state: pending, reason: "GateNotReady",
			message: "Gate 'flux-system/production' has an invalid spec and does not open, so exceptions have no effect", recheck: "2026-11-23T13:00:00Z"},
		"an invalid one without gate": {at: "2026-11-23T12:00:00Z", edit: broken, state: pending, reason: "GateNotFound", message: "Gate 'flux-system/production' does not exist", recheck: "2026-11-23T13:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			e := exception(byDefault(isOpened), created("2026-11-01T00:00:00Z"))
			if tc.edit != nil {
				tc.edit(e)
			}
			if tc.gate != nil {
				production(tc.gate)
			}
			gate.HandleApprovals(e, noon, true)
			d := gate.DecideException(e, tc.gate, append(tc.others, e), utc(tc.at))
			if d.Reason != tc.reason || d.Active != (tc.state == inForce) || d.Expired != (tc.state == over) {
				t.Errorf("got %s, active %t, expired %t; want %s, %s", d.Reason, d.Active, d.Expired, tc.state, tc.reason)
			}
			invalid := len(timetable.ValidateException(e)) > 0
			if d.Message != tc.message && (!invalid || !strings.HasPrefix(d.Message, tc.message)) {
				t.Errorf("got  %q\nwant %q", d.Message, tc.message)
			}
			if d.Overlapped != tc.overlapped || (len(d.Errors) > 0) != invalid {
				t.Errorf("overlapped %q, errors %v", d.Overlapped, d.Errors)
			}
			if got := stamp(d.Recheck); got != tc.recheck && (tc.recheck != "" || !d.Recheck.IsZero()) {
				t.Errorf("recheck at %s, want %q", got, tc.recheck)
			}
		})
	}
}

func TestExceptionAndGateAgreeOnEffect(t *testing.T) {
	g := production(closed())
	all := []*v1alpha1.GateException{
		exception(called("a"), opensIn(midday), created("2026-11-01T00:00:00Z")),
		exception(called("b"), opensIn(midday), created("2026-11-02T00:00:00Z"), valid("2026-11-23T11:30:00Z", "2026-11-23T12:30:00Z")),
	}
	for at := utc("2026-11-23T10:45:00Z"); at.Before(utc("2026-11-23T13:30:00Z")); at = at.Add(15 * time.Minute) {
		by := ""
		for _, e := range all {
			if gate.DecideException(e, g, all, at).Active {
				by += e.Name
			}
		}
		message := gate.Decide(g, at, all...).Message
		if by == "" && strings.Contains(message, "by exception") || by != "" && !strings.Contains(message, "exception '"+by+"'") {
			t.Errorf("at %s %q is active, but: %s", at, by, message)
		}
	}
}

func TestClosingExceptionWinsOverNewerOpeningOne(t *testing.T) {
	older, newer := created("2026-11-01T00:00:00Z"), created("2026-11-02T00:00:00Z")
	opens := exception(called("opens"), byDefault(isOpened), newer)
	for name, closes := range map[string]edit{
		"close periods": closesIn(midday), "default closed": byDefault(isClosed),
		"both":    all(byDefault(isClosed), closesIn(midday)),
		"invalid": all(closesIn(midday), func(e *v1alpha1.GateException) { e.Spec.ClosePeriods[0].End = nil }),
	} {
		e := exception(called("closes"), closes, older)
		if d := gate.Decide(production(closed()), noon, opens, e); d.State != isClosed || d.By != "closes" {
			t.Errorf("%s: %s", name, d.Message)
		}
		if d := gate.Decide(production(closed()), noon, opens); d.State != isOpened {
			t.Errorf("without it: %s", d.Message)
		}
	}
}

func all(edits ...edit) edit {
	return func(e *v1alpha1.GateException) {
		for _, edit := range edits {
			edit(e)
		}
	}
}

func TestPastExceptionCountsForRequestOfItsTime(t *testing.T) {
	requested := "2026-11-23T11:30:00Z"
	g := production(accepted(t, closed(), shut("2026-11-23T11:20:00Z"), open(requested)))
	g.Spec.Window = duration(2 * time.Hour)
	e := exception(opensIn(midday), valid("2026-11-23T11:00:00Z", "2026-11-23T11:45:00Z"))
	for _, now := range []time.Time{utc("2026-11-23T11:40:00Z"), noon} {
		if d := gate.Decide(g, now, e); d.ResetToDefaultAt == nil || stamp(d.ResetToDefaultAt.Time) != requested {
			t.Errorf("at %s the request is reported until %v: by the exception, it brought the gate back to what it was by itself", now, d.ResetToDefaultAt)
		}
	}
}
