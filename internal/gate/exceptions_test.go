package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

const (
	extend  = v1alpha1.ExceptionExtend
	suspend = v1alpha1.ExceptionSuspend
	replace = v1alpha1.ExceptionReplace
)

// uid is that of the exceptions of these tests.
const uid = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"

// production gives a Gate the name that exceptions refer to.
func production(g *v1alpha1.Gate) *v1alpha1.Gate {
	g.Namespace, g.Name = "flux-system", "production"
	return g
}

// exception returns one of the production Gate, valid from 11:00 to 13:00 on the day of
// noon, without windows.
func exception(typ v1alpha1.ExceptionType, edits ...func(*v1alpha1.GateException)) *v1alpha1.GateException {
	e := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "x", Generation: 1, UID: uid},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "production"}, Type: typ,
			ValidFrom: *instant("2026-11-23T11:00:00Z"), ValidUntil: *instant("2026-11-23T13:00:00Z"),
		},
	}
	for _, edit := range edits {
		edit(e)
	}
	return e
}

type edit = func(*v1alpha1.GateException)

func called(name string) edit { return func(e *v1alpha1.GateException) { e.Name = name } }

func created(at string) edit {
	return func(e *v1alpha1.GateException) { e.CreationTimestamp = *instant(at) }
}

func valid(from, until string) edit {
	return func(e *v1alpha1.GateException) {
		e.Spec.ValidFrom, e.Spec.ValidUntil = *instant(from), *instant(until)
	}
}

func in(periods ...v1alpha1.Period) edit {
	return func(e *v1alpha1.GateException) { e.Spec.Windows = periods }
}

func lead(d time.Duration) edit {
	return func(e *v1alpha1.GateException) { e.Spec.LeadTime = duration(d) }
}

func deleted(e *v1alpha1.GateException) { e.DeletionTimestamp = instant("2026-11-23T11:30:00Z") }

func ofGate(name string) edit {
	return func(e *v1alpha1.GateException) { e.Spec.GateRef.Name = name }
}

// midday is around noon and longer than exceptions are valid by default.
var midday = weekly("midday", "10:00", "14:00")

// broken makes the spec invalid.
var broken = in(cron("a", "@every 1h", time.Hour))

func TestValidateExceptionNamesTheFieldOfABadInput(t *testing.T) {
	many := make([]v1alpha1.Period, 101)
	for i := range many {
		many[i] = weekly(fmt.Sprintf("p%d", i), "08:00", "09:00")
	}
	kept := func(d time.Duration) edit {
		return func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(d) }
	}
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		exception   *v1alpha1.GateException
		path, cause string // empty if it is good
	}{
		"replace without windows":       {exception(replace), "", ""},
		"extend":                        {exception(extend, in(midday)), "", ""},
		"suspend with a lead":           {exception(suspend, in(midday), lead(time.Second)), "", ""},
		"the longest lead":              {exception(suspend, in(midday), lead(90*day)), "", ""},
		"90 days":                       {exception(replace, valid("2026-11-23T11:00:00Z", "2027-02-21T11:00:00Z")), "", ""},
		"100 windows":                   {exception(extend, in(many[:100]...)), "", ""},
		"deleted at once":               {exception(replace, kept(0)), "", ""},
		"kept for ten years":            {exception(replace, kept(87600*time.Hour)), "", ""},
		"the longest name of a gate":    {exception(replace, ofGate(strings.Repeat("g", 253))), "", ""},
		"no gate":                       {exception(replace, ofGate("")), "spec.gateRef.name", "Required"},
		"a name of a gate too long":     {exception(replace, ofGate(strings.Repeat("g", 254))), "spec.gateRef.name", "253"},
		"no type":                       {exception("", in(midday)), "spec.type", "Unsupported"},
		"an unknown type":               {exception("open", in(midday)), "spec.type", "Unsupported"},
		"no validFrom":                  {exception(replace, func(e *v1alpha1.GateException) { e.Spec.ValidFrom = metav1.Time{} }), "spec.validFrom", "Required"},
		"no validUntil":                 {exception(replace, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = metav1.Time{} }), "spec.validUntil", "Required"},
		"validFrom with a fraction":     {exception(replace, valid("2026-11-23T11:00:00.5Z", "2026-11-23T13:00:00Z")), "spec.validFrom", "whole seconds"},
		"validUntil with a fraction":    {exception(replace, valid("2026-11-23T11:00:00Z", "2026-11-23T13:00:00.000000001Z")), "spec.validUntil", "whole seconds"},
		"validUntil before validFrom":   {exception(replace, valid("2026-11-23T13:00:00Z", "2026-11-23T11:00:00Z")), "spec.validUntil", "later than validFrom"},
		"validUntil equal to validFrom": {exception(replace, valid("2026-11-23T13:00:00Z", "2026-11-23T13:00:00Z")), "spec.validUntil", "later than validFrom"},
		"90 days and a second":          {exception(replace, valid("2026-11-23T11:00:00Z", "2027-02-21T11:00:01Z")), "spec.validUntil", "at most 2160h"},
		"a lead for extend":             {exception(extend, in(midday), lead(time.Hour)), "spec.leadTime", "suspend only"},
		"a lead for replace":            {exception(replace, in(midday), lead(time.Hour)), "spec.leadTime", "suspend only"},
		"a lead of 0s":                  {exception(suspend, in(midday), lead(0)), "spec.leadTime", "from 1s to 2160h"},
		"a negative lead":               {exception(suspend, in(midday), lead(-time.Hour)), "spec.leadTime", "from 1s to 2160h"},
		"a lead of more than 90 days":   {exception(suspend, in(midday), lead(90*day+1)), "spec.leadTime", "from 1s to 2160h"},
		"a negative ttl":                {exception(replace, kept(-1)), "spec.ttlAfterExpired", "from 0s to 87600h"},
		"a ttl of more than ten years":  {exception(replace, kept(87600*time.Hour+1)), "spec.ttlAfterExpired", "from 0s to 87600h"},
		"extend without windows":        {exception(extend), "spec.windows", "Required"},
		"suspend without windows":       {exception(suspend), "spec.windows", "Required"},
		"101 windows":                   {exception(replace, in(many...)), "spec.windows", "100"},
		"two windows of one name":       {exception(extend, in(midday, midday)), "spec.windows[1].name", "Duplicate"},
		"a window without a name":       {exception(extend, in(weekly("", "08:00", "09:00"))), "spec.windows[0].name", "needs a name"},
		"a window without a form":       {exception(extend, in(v1alpha1.Period{Name: "a"})), "spec.windows[0]", "exactly one of"},
		"25:00 as start":                {exception(extend, in(midday, weekly("a", "25:00", "09:00"))), "spec.windows[1].start", "00:00 to 23:59"},
		"24:01 as end":                  {exception(extend, in(weekly("a", "08:00", "24:01"))), "spec.windows[0].end", "00:00 to 24:00"},
		"an unknown day":                {exception(extend, in(weekly("a", "08:00", "09:00", "Fri"))), "spec.windows[0].daysOfWeek[0]", "must be Monday, Tuesday"},
		"@every":                        {exception(replace, broken), "spec.windows[0].schedule", "descriptors"},
		"a duration of 59s":             {exception(suspend, in(cron("a", "0 0 * * *", 59*time.Second))), "spec.windows[0].duration", "from 1m"},
		"until before from":             {exception(extend, in(dated("a", "2026-12-02T00:00:00Z", "2026-12-01T00:00:00Z"))), "spec.windows[0].until", "later than from"},
		"an unknown zone": {exception(extend, in(func() v1alpha1.Period {
			p := weekly("a", "08:00", "09:00")
			p.TimeZone = "Mars/Olympus"
			return p
		}())), "spec.windows[0].timeZone", "unknown time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := gate.ValidateException(tc.exception)
			if tc.path == "" && len(errs) == 0 {
				return
			}
			if len(errs) != 1 || errs[0].Field != tc.path || !strings.Contains(errs[0].Error(), tc.cause) {
				t.Errorf("got %v, want %q at %q", errs, tc.cause, tc.path)
			}
		})
	}
}

// A condition says them: in another order each time it would be written again and again.
func TestTheErrorsOfAnExceptionAreInAlwaysTheSameOrder(t *testing.T) {
	e := exception("open", valid("2026-11-23T11:00:00.5Z", "2026-11-23T13:00:00.5Z"), lead(0))
	want := "spec.type spec.validFrom spec.validUntil spec.leadTime spec.leadTime spec.windows"
	for range 50 {
		var paths []string
		for _, err := range gate.ValidateException(e) {
			paths = append(paths, err.Field)
		}
		if got := strings.Join(paths, " "); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// asking has a Gate ask for approvals.
func asking(g *v1alpha1.Gate, n int32) *v1alpha1.Gate {
	g.Spec.Exceptions = &v1alpha1.ExceptionPolicy{Approvals: n}
	return g
}

func TestWindowsOfAnExceptionAreInTheZoneOfTheGate(t *testing.T) {
	oslo := func(s *v1alpha1.GateSpec) { s.TimeZone = "Europe/Oslo" }
	inUTC := weekly("a", "12:00", "13:00")
	inUTC.TimeZone = "UTC"
	for name, tc := range map[string]struct {
		window v1alpha1.Period
		opens  string
	}{
		"of the gate": {weekly("a", "12:15", "13:00"), "2026-11-23T11:15:00Z"},
		"its own":     {inUTC, "2026-11-23T12:00:00Z"},
	} {
		g, e := production(closed(oslo)), exception(extend, in(tc.window))
		at := utc(tc.opens)
		if before, then := gate.Decide(g, at.Add(-1), e), gate.Decide(g, at, e); before.State != isClosed || then.State != isOpened {
			t.Errorf("%s: %s before %s, then %s", name, before.State, tc.opens, then.State)
		}
	}
}

// Fractions of a second in windows are rounded so that nothing opens early or closes
// late, and the window changes nothing about it.
func TestFractionsInWindowsOfAnException(t *testing.T) {
	fraction := in(dated("a", "2026-11-23T11:30:00.5Z", "2026-11-23T12:30:00.5Z"))
	schedule := windows(midday)
	closes := closePeriods(closing(midday, ""))
	for name, tc := range map[string]struct {
		gate       *v1alpha1.Gate
		exception  *v1alpha1.GateException
		inside     v1alpha1.State
		start, end string
	}{
		"extend a gate closed by default":  {closed(), exception(extend, fraction), isOpened, "11:30:01", "12:30:00"},
		"replace a gate closed by default": {closed(), exception(replace, fraction), isOpened, "11:30:01", "12:30:00"},
		"suspend a gate closed by default": {closed(schedule), exception(suspend, fraction), isClosed, "11:30:00", "12:30:01"},
		"extend a gate opened by default":  {opened(), exception(extend, fraction), isClosed, "11:30:00", "12:30:01"},
		"replace a gate opened by default": {opened(), exception(replace, fraction), isClosed, "11:30:00", "12:30:01"},
		"suspend a gate opened by default": {opened(closes), exception(suspend, fraction), isOpened, "11:30:01", "12:30:00"},
	} {
		t.Run(name, func(t *testing.T) {
			start, end := utc("2026-11-23T"+tc.start+"Z"), utc("2026-11-23T"+tc.end+"Z")
			for at, inside := range map[time.Time]bool{start.Add(-time.Second): false, start: true, end.Add(-time.Second): true, end: false} {
				if d := gate.Decide(production(tc.gate), at, tc.exception); (d.State == tc.inside) != inside {
					t.Errorf("%s at %s", d.State, at.Format(time.TimeOnly))
				}
			}
		})
	}
}

func TestWhichExceptionsCount(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   edit
		counts bool
	}{
		"one of the gate":               {called("x"), true},
		"another namespace":             {func(e *v1alpha1.GateException) { e.Namespace = "apps" }, false},
		"another gate":                  {ofGate("staging"), false},
		"deleted":                       {deleted, false},
		"expired":                       {valid("2026-11-23T10:00:00Z", "2026-11-23T12:00:00Z"), false},
		"valid for its last nanosecond": {valid("2026-11-23T10:00:00Z", "2026-11-23T12:00:01Z"), true},
		"valid from now":                {valid("2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"), true},
		"valid from the next second":    {valid("2026-11-23T12:00:01Z", "2026-11-23T13:00:00Z"), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.Decide(production(closed()), noon, exception(extend, in(midday), tc.edit))
			if (d.State == isOpened) != tc.counts {
				t.Errorf("%s (%s)", d.State, d.Message)
			}
		})
	}
}

func TestApprovalsThatAreMissingKeepAnExceptionFromCounting(t *testing.T) {
	e := exception(extend, in(midday), written("mallory"), by1("alice"))
	gate.HandleApprovals(e, noon, true)
	for asks, want := range map[int32]v1alpha1.State{0: isOpened, 1: isOpened, 2: isClosed} {
		d := gate.Decide(asking(production(closed()), asks), noon, e)
		if d.State != want || want == isClosed && !d.Recheck.IsZero() {
			t.Errorf("%d approvals: %s, recheck %s", asks, d.State, d.Recheck)
		}
	}
}

func TestTheNewestExceptionWinsThenTheFirstByName(t *testing.T) {
	opens := func(name, at string) *v1alpha1.GateException {
		return exception(extend, in(midday), called(name), created(at))
	}
	for name, tc := range map[string]struct {
		exceptions []*v1alpha1.GateException
		want       string
	}{
		"the newest": {[]*v1alpha1.GateException{opens("a", "2026-11-01T00:00:00Z"), opens("b", "2026-11-02T00:00:00Z"), opens("c", "2026-11-01T12:00:00Z")}, "b"},
		"by name":    {[]*v1alpha1.GateException{opens("b", "2026-11-02T00:00:00Z"), opens("a", "2026-11-02T00:00:00Z"), opens("0", "2026-11-01T00:00:00Z")}, "a"},
	} {
		if d := gate.Decide(production(closed()), noon, tc.exceptions...); d.Message != "Gate opened by exception '"+tc.want+"', scheduled for closing at 2026-11-23T13:00:00Z" {
			t.Errorf("%s: %s", name, d.Message)
		}
	}
	newest := exception(replace, called("z"), created("2026-11-03T00:00:00Z"))
	if d := gate.Decide(production(closed(windows(midday))), noon, opens("a", "2026-11-01T00:00:00Z"), newest); d.State != isClosed || !strings.Contains(d.Message, "'z'") {
		t.Errorf("an older one opens what the newest keeps closed: %s", d.Message)
	}
}

func TestExceptionsAreCheckedAgainOnlyAtEdgesThatConcernThem(t *testing.T) {
	g := production(closed())
	at := func(second int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(second) * time.Second)) }
	var all []*v1alpha1.GateException
	for i := range 100 { // the oldest ones begin last
		e := exception(suspend, called(fmt.Sprintf("x%03d", i)))
		e.Spec.ValidFrom, e.Spec.ValidUntil, e.CreationTimestamp = at(1000-2*i), at(1001-2*i), at(-1000+i)
		all = append(all, e)
	}
	overlapping := exception(suspend, called("overlapping"))
	overlapping.Spec.ValidFrom, overlapping.Spec.ValidUntil, overlapping.CreationTimestamp = at(840), at(850), at(-1)
	for name, tc := range map[string]struct {
		exception *v1alpha1.GateException
		all       []*v1alpha1.GateException
		want      int
	}{
		"its own start":                  {all[99], all, 802},
		"the start of one that overlaps": {all[80], append([]*v1alpha1.GateException{overlapping}, all...), 840},
		"its own, of one that overlaps":  {overlapping, append([]*v1alpha1.GateException{overlapping}, all...), 840},
		"those that leave no room":       {all[0], all, 960},
		"its own, long after others":     {all[30], all, 940},
	} {
		if got := gate.DecideException(tc.exception, g, tc.all, noon).Recheck; !got.Equal(at(tc.want).Time) {
			t.Errorf("%s: %s, want %s", name, got, at(tc.want))
		}
	}
	waits := exception(suspend, called("waits"))
	waits.Spec.ValidFrom, waits.Spec.ValidUntil, waits.CreationTimestamp = at(1), at(2), at(-2000)
	if got := gate.DecideException(all[0], asking(production(closed()), 1), append(all, waits), noon).Recheck; !got.Equal(at(1000).Time) {
		t.Errorf("with one that waits for approval: %s", got)
	}
}
