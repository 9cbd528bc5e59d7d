package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// uid is that of the exceptions of these tests.
const uid = "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"

// production gives a Gate the name that exceptions refer to.
func production(g *v1alpha1.Gate) *v1alpha1.Gate {
	g.Namespace, g.Name = "flux-system", "production"
	return g
}

// exception returns one of the production Gate, valid from 11:00 to 13:00 on the day of
// noon, without periods.
func exception(edits ...func(*v1alpha1.GateException)) *v1alpha1.GateException {
	e := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "x", Generation: 1, UID: uid},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "production"}, TimeZone: "UTC",
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

func opensIn(periods ...v1alpha1.Period) edit {
	return func(e *v1alpha1.GateException) { e.Spec.OpenPeriods = periods }
}

func closesIn(periods ...v1alpha1.Period) edit {
	return func(e *v1alpha1.GateException) { e.Spec.ClosePeriods = periods }
}

func byDefault(s v1alpha1.State) edit {
	return func(e *v1alpha1.GateException) { e.Spec.Default = s }
}

func inZone(zone v1alpha1.TimeZone) edit {
	return func(e *v1alpha1.GateException) { e.Spec.TimeZone = zone }
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
var broken = opensIn(cron("a", "@every 1h", time.Hour))

func TestValidateExceptionNamesInvalidField(t *testing.T) {
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
		"a default without periods":     {exception(byDefault(isClosed)), "", ""},
		"open periods":                  {exception(opensIn(midday)), "", ""},
		"close periods":                 {exception(closesIn(midday)), "", ""},
		"both and a default":            {exception(opensIn(midday), closesIn(weekly("lunch", "12:00", "13:00")), byDefault(isOpened)), "", ""},
		"close periods with a lead":     {exception(closesIn(midday), lead(time.Second)), "", ""},
		"open periods with a lead":      {exception(opensIn(midday), lead(time.Second)), "", ""},
		"the longest lead":              {exception(closesIn(midday), lead(90*day)), "", ""},
		"dated without a zone":          {exception(inZone(""), opensIn(dated("a", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"))), "", ""},
		"each with a zone of its own":   {exception(inZone(""), opensIn(zone("UTC", midday))), "", ""},
		"90 days":                       {exception(byDefault(isClosed), valid("2026-11-23T11:00:00Z", "2027-02-21T11:00:00Z")), "", ""},
		"100 periods":                   {exception(opensIn(many[:60]...), closesIn(many[60:100]...)), "", ""},
		"deleted at once":               {exception(byDefault(isClosed), kept(0)), "", ""},
		"kept for ten years":            {exception(byDefault(isClosed), kept(87600*time.Hour)), "", ""},
		"the longest name of a gate":    {exception(byDefault(isClosed), ofGate(strings.Repeat("g", 253))), "", ""},
		"no gate":                       {exception(byDefault(isClosed), ofGate("")), "spec.gateRef.name", "Required"},
		"a name of a gate too long":     {exception(byDefault(isClosed), ofGate(strings.Repeat("g", 254))), "spec.gateRef.name", "253"},
		"an unknown default":            {exception(byDefault("open")), "spec.default", "Unsupported"},
		"no validFrom":                  {exception(byDefault(isClosed), func(e *v1alpha1.GateException) { e.Spec.ValidFrom = metav1.Time{} }), "spec.validFrom", "Required"},
		"no validUntil":                 {exception(byDefault(isClosed), func(e *v1alpha1.GateException) { e.Spec.ValidUntil = metav1.Time{} }), "spec.validUntil", "Required"},
		"validFrom with a fraction":     {exception(byDefault(isClosed), valid("2026-11-23T11:00:00.5Z", "2026-11-23T13:00:00Z")), "spec.validFrom", "whole seconds"},
		"validUntil with a fraction":    {exception(byDefault(isClosed), valid("2026-11-23T11:00:00Z", "2026-11-23T13:00:00.000000001Z")), "spec.validUntil", "whole seconds"},
		"validUntil before validFrom":   {exception(byDefault(isClosed), valid("2026-11-23T13:00:00Z", "2026-11-23T11:00:00Z")), "spec.validUntil", "later than validFrom"},
		"validUntil equal to validFrom": {exception(byDefault(isClosed), valid("2026-11-23T13:00:00Z", "2026-11-23T13:00:00Z")), "spec.validUntil", "later than validFrom"},
		"90 days and a second":          {exception(byDefault(isClosed), valid("2026-11-23T11:00:00Z", "2027-02-21T11:00:01Z")), "spec.validUntil", "at most 2160h"},
		"a lead with a default":         {exception(opensIn(midday), byDefault(isClosed), lead(time.Hour)), "spec.leadTime", "remove leadTime or default"},
		"a lead with both lists":        {exception(opensIn(midday), closesIn(weekly("lunch", "12:00", "13:00")), lead(time.Hour)), "spec.leadTime", "exactly one of openPeriods and closePeriods"},
		"a lead of 0s":                  {exception(closesIn(midday), lead(0)), "spec.leadTime", "from 1s to 2160h"},
		"a negative lead":               {exception(closesIn(midday), lead(-time.Hour)), "spec.leadTime", "from 1s to 2160h"},
		"a lead of more than 90 days":   {exception(closesIn(midday), lead(90*day+1)), "spec.leadTime", "from 1s to 2160h"},
		"a negative ttl":                {exception(byDefault(isClosed), kept(-1)), "spec.ttlAfterExpired", "from 0s to 87600h"},
		"a ttl of more than ten years":  {exception(byDefault(isClosed), kept(87600*time.Hour+1)), "spec.ttlAfterExpired", "from 0s to 87600h"},
		"neither periods nor a default": {exception(), "spec", "write default: closed"},
		"101 periods":                   {exception(opensIn(many[:60]...), closesIn(many[60:]...)), "spec", "100"},
		"two open periods of one name":  {exception(opensIn(midday, midday)), "spec.openPeriods[1].name", "Duplicate"},
		"one name in both lists":        {exception(opensIn(midday), closesIn(midday)), "spec.closePeriods[0].name", "Duplicate"},
		"weekly without a zone":         {exception(inZone(""), opensIn(midday)), "spec.openPeriods[0].timeZone", "set it here or in spec.timeZone"},
		"a cron without a zone":         {exception(inZone(""), closesIn(zone("UTC", midday), cron("a", "0 0 * * *", time.Hour))), "spec.closePeriods[1].timeZone", "set it here or in spec.timeZone"},
		"a date without a zone":         {exception(inZone(""), opensIn(dated("a", "2026-12-01", "2026-12-01"))), "spec.openPeriods[0].timeZone", "set it here or in spec.timeZone"},
		"a local time without a zone":   {exception(inZone(""), closesIn(dated("a", "2026-12-01T08:00", "2026-12-01T09:00"))), "spec.closePeriods[0].timeZone", "set it here or in spec.timeZone"},
		"an unknown zone of its own":    {exception(inZone("Mars/Olympus"), opensIn(midday)), "spec.timeZone", "unknown time zone"},
		"a period without a name":       {exception(opensIn(weekly("", "08:00", "09:00"))), "spec.openPeriods[0].name", "needs a name"},
		"a period without a form":       {exception(opensIn(v1alpha1.Period{Name: "a"})), "spec.openPeriods[0]", "exactly one of"},
		"25:00 as start":                {exception(opensIn(midday, weekly("a", "25:00", "09:00"))), "spec.openPeriods[1].start", "00:00 to 23:59"},
		"24:01 as end":                  {exception(opensIn(weekly("a", "08:00", "24:01"))), "spec.openPeriods[0].end", "00:00 to 24:00"},
		"an unknown day":                {exception(opensIn(weekly("a", "08:00", "09:00", "Fri"))), "spec.openPeriods[0].daysOfWeek[0]", "must be Monday, Tuesday"},
		"@every":                        {exception(byDefault(isClosed), broken), "spec.openPeriods[0].schedule", "descriptors"},
		"a duration of 59s":             {exception(closesIn(cron("a", "0 0 * * *", 59*time.Second))), "spec.closePeriods[0].duration", "from 1m"},
		"until before from":             {exception(opensIn(dated("a", "2026-12-02T00:00:00Z", "2026-12-01T00:00:00Z"))), "spec.openPeriods[0].until", "later than from"},
		"an unknown zone of a period":   {exception(opensIn(zone("Mars/Olympus", midday))), "spec.openPeriods[0].timeZone", "unknown time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := timetable.ValidateException(tc.exception)
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
func TestExceptionErrorsHaveStableOrder(t *testing.T) {
	e := exception(byDefault("open"), valid("2026-11-23T11:00:00.5Z", "2026-11-23T13:00:00.5Z"), lead(0))
	want := "spec.validFrom spec.validUntil spec.default spec.leadTime spec.leadTime"
	for range 50 {
		var paths []string
		for _, err := range timetable.ValidateException(e) {
			paths = append(paths, err.Field)
		}
		if got := strings.Join(paths, " "); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// asking makes a Gate require approvals.
func asking(g *v1alpha1.Gate, n int32) *v1alpha1.Gate {
	g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: n}}
	return g
}

func TestExceptionPeriodsUseExceptionTimeZone(t *testing.T) {
	for name, tc := range map[string]struct {
		period v1alpha1.Period
		opens  string
	}{
		"of the exception": {weekly("a", "12:15", "13:00"), "2026-11-23T11:15:00Z"},
		"its own":          {zone("UTC", weekly("a", "12:00", "13:00")), "2026-11-23T12:00:00Z"},
		"a local time":     {dated("a", "2026-11-23T12:15", "2026-11-23T13:00"), "2026-11-23T11:15:00Z"},
	} {
		for _, of := range []v1alpha1.TimeZone{"", "Asia/Tokyo"} {
			g := production(closed(func(s *v1alpha1.GateSpec) { s.TimeZone = of }))
			e, at := exception(inZone("Europe/Oslo"), opensIn(tc.period)), utc(tc.opens)
			if before, then := gate.Decide(g, at.Add(-1), e), gate.Decide(g, at, e); before.State != isClosed || then.State != isOpened {
				t.Errorf("%s: %s before %s, then %s", name, before.State, tc.opens, then.State)
			}
		}
	}
}

// Fractions of a second in periods are rounded so that nothing opens early or closes
// late, and the default of the Gate changes nothing about it.
func TestFractionsInExceptionPeriods(t *testing.T) {
	fraction := dated("a", "2026-11-23T11:30:00.5Z", "2026-11-23T12:30:00.5Z")
	schedule := windows(midday)
	closes := closePeriods(closing(midday, ""))
	for name, tc := range map[string]struct {
		gate       *v1alpha1.Gate
		exception  *v1alpha1.GateException
		inside     v1alpha1.State
		start, end string
	}{
		"open, closed by default":               {closed(), exception(opensIn(fraction)), isOpened, "11:30:01", "12:30:00"},
		"open, and closed in the exception":     {opened(), exception(opensIn(fraction), byDefault(isClosed)), isOpened, "11:30:01", "12:30:00"},
		"open, in a close period":               {opened(closes), exception(opensIn(fraction)), isOpened, "11:30:01", "12:30:00"},
		"close, opened by default":              {opened(), exception(closesIn(fraction)), isClosed, "11:30:00", "12:30:01"},
		"close, and opened in the exception":    {closed(), exception(closesIn(fraction), byDefault(isOpened)), isClosed, "11:30:00", "12:30:01"},
		"close, closed by default, in a period": {closed(schedule), exception(closesIn(fraction)), isClosed, "11:30:00", "12:30:01"},
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

func TestCountedExceptions(t *testing.T) {
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
			d := gate.Decide(production(closed()), noon, exception(opensIn(midday), tc.edit))
			if (d.State == isOpened) != tc.counts {
				t.Errorf("%s (%s)", d.State, d.Message)
			}
		})
	}
}

func TestUnapprovedExceptionDoesNotCount(t *testing.T) {
	e := exception(opensIn(midday), written("mallory"), by1("alice"))
	gate.HandleApprovals(e, noon, true)
	for asks, want := range map[int32]v1alpha1.State{0: isOpened, 1: isOpened, 2: isClosed} {
		d := gate.Decide(asking(production(closed()), asks), noon, e)
		if d.State != want || want == isClosed && !d.Recheck.IsZero() {
			t.Errorf("%d approvals: %s, recheck %s", asks, d.State, d.Recheck)
		}
	}
}

func TestNewestExceptionWinsThenFirstByName(t *testing.T) {
	opens := func(name, at string) *v1alpha1.GateException {
		return exception(opensIn(midday), called(name), created(at))
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
	newest := exception(byDefault(isClosed), called("z"), created("2026-11-03T00:00:00Z"))
	if d := gate.Decide(production(closed(windows(midday))), noon, opens("a", "2026-11-01T00:00:00Z"), newest); d.State != isClosed || !strings.Contains(d.Message, "'z'") {
		t.Errorf("an older one opens what the newest keeps closed: %s", d.Message)
	}
}

func TestExceptionsAreRequeuedAtTheirEdgesOnly(t *testing.T) {
	g := production(closed())
	at := func(second int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(second) * time.Second)) }
	var all []*v1alpha1.GateException
	for i := range 100 { // the oldest ones begin last
		e := exception(called(fmt.Sprintf("x%03d", i)), closesIn(midday))
		e.Spec.ValidFrom, e.Spec.ValidUntil, e.CreationTimestamp = at(1000-2*i), at(1001-2*i), at(-1000+i)
		all = append(all, e)
	}
	overlapping := exception(called("overlapping"), closesIn(midday))
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
	waits := exception(called("waits"), byDefault(isClosed))
	waits.Spec.ValidFrom, waits.Spec.ValidUntil, waits.CreationTimestamp = at(1), at(2), at(-2000)
	if got := gate.DecideException(all[0], asking(production(closed()), 1), append(all, waits), noon).Recheck; !got.Equal(at(960).Time) {
		t.Errorf("with one that waits for approval: %s", got)
	}
}
