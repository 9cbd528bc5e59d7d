package gate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// ics returns a file with events, each by its lines.
func ics(events ...string) string {
	text := "BEGIN:VCALENDAR\nVERSION:2.0\n"
	for _, e := range events {
		text += "BEGIN:VEVENT\n" + strings.ReplaceAll(e, " ", "\n") + "\nEND:VEVENT\n"
	}
	return text + "END:VCALENDAR\n"
}

// file returns a period that is a calendar.
func file(name string, categories ...string) v1alpha1.Period {
	return v1alpha1.Period{Name: name, Calendar: &v1alpha1.CalendarReference{
		ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}, Categories: categories,
	}}
}

// reading returns the calendars of a Gate if its file has a text.
func reading(g *v1alpha1.Gate, text string) timetable.Calendars {
	return timetable.ReadCalendars(g, noon, noon, func(string, string) (*timetable.Files, error) {
		return &timetable.Files{Data: map[string]string{"no.ics": text}}, nil
	})
}

// unread returns the calendars of a Gate if none can be read.
func unread(g *v1alpha1.Gate) timetable.Calendars {
	return timetable.ReadCalendars(g, noon, noon, func(string, string) (*timetable.Files, error) {
		return nil, errors.New("does not exist")
	})
}

const (
	today    = "UID:1 DTSTART;VALUE=DATE:20261123 SUMMARY:Labour-Day"
	tomorrow = "UID:2 DTSTART;VALUE=DATE:20261124 SUMMARY:Harvest CATEGORIES:Freeze"
)

func TestCalendarDecidesLikeOtherPeriods(t *testing.T) {
	deny := opened(closePeriods(closing(file("days"), "Deny")))
	for name, tc := range map[string]struct {
		gate   *v1alpha1.Gate
		events []string
		state  v1alpha1.State
		// message has no namespace: the Gates of these tests have none.
		message string
	}{
		"a close period on a day":       {opened(closePeriods(closing(file("days"), ""))), []string{today}, "closed", "Gate closed by close period 'days' (Labour-Day), scheduled for opening at 2026-11-24T00:00:00Z"},
		"a close period the day before": {opened(closePeriods(closing(file("days"), ""))), []string{tomorrow}, "opened", "Gate opened outside its close periods, scheduled for closing at 2026-11-24T00:00:00Z by 'days' (Harvest)"},
		"a window on a day":             {closed(windows(file("days"))), []string{today}, "opened", "Gate opened by open period 'days' (Labour-Day), scheduled for closing at 2026-11-24T00:00:00Z"},
		"a window with no event":        {closed(windows(file("days"))), nil, "closed", "Gate closed outside its open periods"},
		"only events of a category":     {opened(closePeriods(closing(file("days", "freeze"), ""))), []string{today, tomorrow}, "opened", "Gate opened outside its close periods, scheduled for closing at 2026-11-24T00:00:00Z by 'days' (Harvest)"},
		"a freeze that nobody lifts":    {accepted(t, deny, open("2026-11-23T11:30:00Z")), []string{today}, "closed", "Gate closed by close period 'days' (Labour-Day), scheduled for opening at 2026-11-24T00:00:00Z"},
		"a day in the zone of a gate":   {opened(func(s *v1alpha1.GateSpec) { s.TimeZone = "Asia/Tokyo" }, closePeriods(closing(file("days"), ""))), []string{today}, "closed", "Gate closed by close period 'days' (Labour-Day), scheduled for opening at 2026-11-23T15:00:00Z"},
		"an event without a name":       {opened(closePeriods(closing(file("days"), ""))), []string{"UID:1 DTSTART;VALUE=DATE:20261123"}, "closed", "Gate closed by close period 'days', scheduled for opening at 2026-11-24T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			d := gate.NewSnapshot(tc.gate, reading(tc.gate, ics(tc.events...))).Decide(noon)
			if d.State != tc.state || len(d.Broken) > 0 {
				t.Errorf("got %s, broken %v", d.State, d.Broken)
			}
			if !strings.HasPrefix(d.Message, tc.message) {
				t.Errorf("got  message %q\nwant message %q", d.Message, tc.message)
			}
		})
	}
}

func TestUnreadableCalendarOpensNothing(t *testing.T) {
	both := func(s *v1alpha1.GateSpec) { s.ClosePeriods = []v1alpha1.ClosePeriod{closing(file("nights"), "")} }
	for name, tc := range map[string]struct {
		gate    *v1alpha1.Gate
		state   v1alpha1.State
		message string
	}{
		"a close period": {opened(closePeriods(closing(file("days"), ""))), "closed",
			"Gate closed by close period 'days', whose calendar cannot be read: ConfigMap shop/days, key no.ics: CAUSE"},
		"a window": {closed(windows(file("days"))), "closed",
			"Gate closed outside its open periods, the calendar of 'days' cannot be read: ConfigMap shop/days, key no.ics: CAUSE"},
		"a window beside one that is open": {closed(windows(weekly("noon", "11:00", "13:00"), file("days"))), "opened",
			"Gate opened by open period 'noon', scheduled for closing at 2026-11-23T13:00:00Z, the calendar of 'days' cannot be read: ConfigMap shop/days, key no.ics: CAUSE"},
		"an open request in a close period": {accepted(t, opened(window(time.Hour), closePeriods(closing(file("days"), ""))), open("2026-11-23T11:30:00Z")), "opened",
			"the calendar of 'days' cannot be read: ConfigMap shop/days, key no.ics: CAUSE"},
		"an open request in a hard close period": {accepted(t, opened(window(time.Hour), closePeriods(closing(file("days"), "Deny"))), open("2026-11-23T11:30:00Z")), "closed",
			"Gate closed by close period 'days', whose calendar cannot be read: ConfigMap shop/days, key no.ics: CAUSE"},
		"a window and a close period": {closed(windows(file("days")), both), "closed",
			"Gate closed by close period 'nights', whose calendar cannot be read: ConfigMap shop/days, key no.ics: CAUSE (and 1 more)"},
	} {
		for kind, tt := range map[string]struct {
			calendars func(*v1alpha1.Gate) timetable.Calendars
			cause     string
		}{
			"it was not looked at": {func(*v1alpha1.Gate) timetable.Calendars { return nil }, "has not been read"},
			"it is gone":           {unread, "does not exist"},
			"it is empty":          {func(g *v1alpha1.Gate) timetable.Calendars { return reading(g, "") }, "CAUSE"},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				g := tc.gate.DeepCopy()
				g.Namespace = "shop"
				calendars := tt.calendars(g)
				d := gate.NewSnapshot(g, calendars).Decide(noon)
				if d.State != tc.state || len(d.Errors) > 0 || len(d.Broken) == 0 {
					t.Errorf("got %s, errors %v, broken %v", d.State, d.Errors, d.Broken)
				}
				message := strings.ReplaceAll(d.Message, d.Broken[0].Cause, "CAUSE")
				if !strings.Contains(message, tc.message) || !strings.Contains(d.Broken[0].Cause, tt.cause) && tt.cause != "CAUSE" {
					t.Errorf("got  message %q\nwant message %q", d.Message, tc.message)
				}
				if path := d.Broken[len(d.Broken)-1].Path; !strings.HasSuffix(path, ".calendar") {
					t.Errorf("it is at %q", path)
				}
				for i, errs := gate.NewSnapshot(g, calendars).Intervals(noon, noon.AddDate(9, 0, 0)); i != nil; i = nil {
					for i := range i {
						if i.State.String() == "opened" && tc.state == "closed" || len(errs) > 0 {
							t.Errorf("opens at %s", i.From)
						}
					}
				}
			})
		}
	}
}

func TestBadCalendarsAreOneError(t *testing.T) {
	for name, text := range map[string]string{
		"too long":               ics(today) + strings.Repeat(" \n", 1<<20),
		"NUL":                    ics("UID:1 DTSTART;VALUE=DATE:20261123 SUMMARY:a\x00b"),
		"a million recurrences":  ics("UID:1 DTSTART;VALUE=DATE:20261123 RRULE:FREQ=DAILY;COUNT=1000000;BYDAY=MO", today),
		"every second":           ics("UID:1 DTSTART:20261123T000000Z DURATION:PT1S RRULE:FREQ=SECONDLY"),
		"a zone that is nowhere": ics("UID:1 DTSTART;TZID=Mars/Olympus:20261123T000000 DURATION:PT1H"),
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(windows(file("days")))
			d := gate.NewSnapshot(g, reading(g, text)).Decide(noon)
			if d.State != v1alpha1.StateClosed || len(d.Broken) != 1 || strings.ContainsAny(d.Message, "\n\x00") {
				t.Errorf("%s: %s", d.State, d.Message)
			}
			if len(d.Message) > 700 {
				t.Errorf("the message has %d bytes", len(d.Message))
			}
		})
	}
}

func TestEventNamesAreUntrustedText(t *testing.T) {
	g := opened(closePeriods(closing(file("days"), "")))
	summary := `UID:1 DTSTART;VALUE=DATE:20261123 SUMMARY:one\ntwo` + "\x1b[31m" + strings.Repeat("é", 200)
	d := gate.NewSnapshot(g, reading(g, ics(summary))).Decide(noon)
	if !strings.HasPrefix(d.Event, "one two [31m") || len(d.Event) > 128 || !strings.HasSuffix(d.Event, "...") {
		t.Errorf("%d bytes: %q", len(d.Event), d.Event)
	}
}

func TestMessageNamesCurrentEvent(t *testing.T) {
	g := opened(closePeriods(closing(file("days"), "")))
	calendars := reading(g, ics(today, tomorrow))
	d := gate.NewSnapshot(g, calendars).Decide(noon)
	if stamp(d.Recheck) != "2026-11-24T00:00:00Z" || d.Next == nil || stamp(d.Next.At.Time) != "2026-11-25T00:00:00Z" {
		t.Errorf("rechecks at %s, next %v", d.Recheck, d.Next)
	}
	if d = gate.NewSnapshot(g, calendars).Decide(d.Recheck); d.Event != "Harvest" {
		t.Errorf("then it is %q", d.Event)
	}
}

// Calendars are expanded only some time ahead, so their Gates are decided again each day, with or without dependencies.
func TestGateWithCalendarIsRecheckedDaily(t *testing.T) {
	for name, dependencies := range map[string][]v1alpha1.DependencyStatus{"alone": nil, "with a dependency": dependency(true)} {
		g := opened(closePeriods(closing(file("days"), "")))
		if dependencies != nil {
			g = following(g)
		}
		for after, known := range map[time.Duration]bool{0: false, 24 * time.Hour: true} {
			at := noon.Add(after)
			day := at.Truncate(24 * time.Hour)
			calendars := timetable.ReadCalendars(g, day, day, func(string, string) (*timetable.Files, error) {
				return &timetable.Files{Data: map[string]string{"no.ics": ics("UID:1 DTSTART;VALUE=DATE:20281124")}}, nil
			})
			r := gate.NewSnapshot(g, calendars).Resolve(gate.Observed{Dependencies: dependencies}, at)
			if (r.Next != nil) != known || !slices.ContainsFunc(r.Rechecks, at.Add(24*time.Hour).Equal) {
				t.Errorf("%s, after %s: next %v, rechecks %v", name, after, r.Next, r.Rechecks)
			}
		}
	}
}

func TestExceptionPeriodsAreNoCalendars(t *testing.T) {
	e := exception(opensIn(file("days")))
	errs := timetable.ValidateException(e)
	if len(errs) != 1 || errs[0].Field != "spec.openPeriods[0].calendar" || !strings.Contains(errs[0].Error(), "must not have a calendar") {
		t.Errorf("%v", errs)
	}
}

func BenchmarkDecideWithACalendar(b *testing.B) {
	g := opened(closePeriods(closing(file("days"), "")))
	calendars := reading(g, ics("UID:1 DTSTART:20251123T000000Z DURATION:PT1H RRULE:FREQ=DAILY"))
	b.ReportAllocs()
	for b.Loop() {
		gate.NewSnapshot(g, calendars).Decide(noon)
	}
}

func TestCalendarsBeyondConfigMapLimitAreOverBudget(t *testing.T) {
	var open []v1alpha1.Period
	var shut []v1alpha1.ClosePeriod
	for i := range 10 {
		in := func(prefix string) v1alpha1.Period {
			p := file(fmt.Sprint(prefix, i))
			p.Calendar.ConfigMapRef.Name = p.Name
			return p
		}
		open, shut = append(open, in("w")), append(shut, closing(in("c"), ""))
	}
	shut = append(shut, closing(open[0], "")) // of a ConfigMap within the budget
	shut[10].Name = "again"
	g := production(closed(windows(open...), closePeriods(shut...)))
	read := map[string]bool{}
	calendars := timetable.ReadCalendars(g, noon, noon, func(_, name string) (*timetable.Files, error) {
		read[name] = true
		return &timetable.Files{Data: map[string]string{"no.ics": ics("UID:1 DTSTART;VALUE=DATE:20271225")}}, nil
	})
	var broken []string
	for _, b := range gate.NewSnapshot(g, calendars).Broken() {
		if b.Cause != timetable.ErrOverBudget.Error() {
			t.Errorf("%s: %s", b.Name, b.Cause)
		}
		broken = append(broken, b.Name)
	}
	if want := []string{"c6", "c7", "c8", "c9"}; !slices.Equal(broken, want) || len(read) != 16 || len(timetable.CalendarsOf(g)) != 17 { // one is in a window and in a close period
		t.Errorf("broken: %v, read: %v", broken, read)
	}
	if d := gate.NewSnapshot(g, calendars).Decide(noon); d.State != isClosed || d.Reason != "ClosePeriod" {
		t.Errorf("%s %s", d.State, d.Message)
	}
}
