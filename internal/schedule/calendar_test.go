package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// spans are made of "from/until name" with hours of one day.
func spans(texts ...string) []schedule.CalendarEvent {
	var all []schedule.CalendarEvent
	for _, text := range texts {
		var from, until int
		var name string
		if _, err := fmt.Sscanf(text, "%d-%d %s", &from, &until, &name); err != nil {
			panic(err)
		}
		midnight := utc("2026-06-01T00:00:00Z")
		all = append(all, schedule.CalendarEvent{Start: midnight.Add(time.Duration(from) * time.Hour), End: midnight.Add(time.Duration(until) * time.Hour), Name: name})
	}
	return all
}

func TestCalendarCoversItsSpans(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spans []schedule.CalendarEvent
		want  string
		// events are those at each full hour from 0 to 11, a dot for none.
		events string
	}{
		{"none", nil, "", "............"},
		{"one", spans("2-4 a"), "2026-06-01T02:00/04:00", "..aa........"},
		{"in any order", spans("6-7 b", "2-4 a"), "2026-06-01T02:00/04:00 2026-06-01T06:00/07:00", "..aa..b....."},
		{"one after another", spans("2-4 a", "4-5 b"), "2026-06-01T02:00/05:00", "..aab......."},
		{"that overlap: the one that ends last", spans("2-6 a", "4-8 b"), "2026-06-01T02:00/08:00", "..aabbbb...."},
		{"within another", spans("2-8 a", "4-6 b"), "2026-06-01T02:00/08:00", "..aaaaaa...."},
		{"that start together", spans("2-4 b", "2-6 a"), "2026-06-01T02:00/06:00", "..aaaa......"},
		{"that end together", spans("2-6 a", "4-6 b"), "2026-06-01T02:00/06:00", "..aaaa......"},
		{"the same twice", spans("2-4 b", "2-4 a"), "2026-06-01T02:00/04:00", "..aa........"},
		{"with one name", spans("2-4 a", "3-5 a", "5-6 a"), "2026-06-01T02:00/06:00", "..aaaa......"},
		{"three in a chain", spans("2-5 a", "3-6 b", "4-7 c"), "2026-06-01T02:00/07:00", "..abccc....."},
		{"that cover nothing", spans("2-2 a", "5-4 b"), "", "............"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := schedule.Calendar("calendar", tt.spans)
			coverage{tt.name, p, "2026-06-01/2026-06-02", tt.want}.run(t)
			events := ""
			for h := range 12 {
				at := utc("2026-06-01").Add(time.Duration(h) * time.Hour)
				name, until, ok := p.Event(at)
				if ok != (name != "") || ok != until.After(at) {
					t.Fatalf("%q until %s, %t", name, until, ok)
				}
				if next, _, _ := p.Event(until); ok && next == name {
					t.Errorf("%q at %s goes on after %s", name, at, until)
				}
				if before, _, _ := p.Event(until.Add(-time.Second)); before != name {
					t.Errorf("%q at %s is not it up to %s", name, at, until)
				}
				events += (name + ".")[:1]
			}
			if events != tt.events {
				t.Errorf("events are %s, want %s", events, tt.events)
			}
		})
	}
}

func TestOnlyCalendarsHaveEvents(t *testing.T) {
	for _, p := range []schedule.Period{{}, dated("dated", "", ""), weekly("UTC", "00:00", "24:00"), cron("UTC", "* * * * *", time.Hour)} {
		if name, _, ok := p.Event(benchNow); ok {
			t.Errorf("%s has the event %q", p.Name(), name)
		}
	}
}

func TestDecisionNamesCalendar(t *testing.T) {
	p := schedule.Calendar("freezes", spans("2-6 a", "4-8 b"))
	plan := newPlan(schedule.Config{Default: schedule.Opened, ClosePeriods: []schedule.Period{p}})
	d := plan.Decide(utc("2026-06-01T03:00:00Z"))
	if d.State != schedule.Closed || d.Reason != schedule.ClosePeriod || d.By != "freezes" || d.Event != "a" ||
		!d.Until.Equal(utc("2026-06-01T04:00:00Z")) || !d.Next.At.Equal(utc("2026-06-01T08:00:00Z")) {
		t.Errorf("%+v", d)
	}
	if next := plan.Decide(utc("2026-06-01T01:00:00Z")).Next; next.By != "freezes" || next.Event != "a" {
		t.Errorf("%+v", next)
	}
	for i := range plan.Intervals(utc("2026-06-01T05:00:00Z"), utc("2026-06-01T07:00:00Z")) {
		if i.By != "freezes" || i.Event != "b" {
			t.Errorf("%+v", i)
		}
	}
	other := p.Named("other")
	if d := newPlan(schedule.Config{ClosePeriods: []schedule.Period{other}}).Decide(utc("2026-06-01T03:00:00Z")); d.By != "other" || p.Name() != "freezes" {
		t.Errorf("%+v, and the first is %q", d, p.Name())
	}
}

// TestCalendarMatchesModel checks for each hour whether an event covers it, and which ends last.
func TestCalendarMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		midnight := utc("2026-06-01T00:00:00Z")
		var all []schedule.CalendarEvent
		for i := range rapid.IntRange(0, 8).Draw(t, "spans") {
			from := rapid.IntRange(0, 30).Draw(t, "from")
			until := from + rapid.IntRange(-1, 10).Draw(t, "length")
			all = append(all, schedule.CalendarEvent{
				Start: midnight.Add(time.Duration(from) * time.Hour), End: midnight.Add(time.Duration(until) * time.Hour), Name: fmt.Sprint("e", i%3),
			})
		}
		p := schedule.Calendar("calendar", all)
		plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{p}})
		for h := range 40 {
			at := midnight.Add(time.Duration(h) * time.Hour)
			var names []string
			var last time.Time
			for _, s := range all {
				if s.Start.After(at) || !s.End.After(at) {
					continue
				}
				if s.End.After(last) {
					names, last = nil, s.End
				}
				if s.End.Equal(last) {
					names = append(names, s.Name)
				}
			}
			name, _, ok := p.Event(at)
			if ok != (len(names) > 0) || ok && !slices.Contains(names, name) {
				t.Fatalf("at %d it is %q, want one of %q", h, name, names)
			}
			if open := plan.Decide(at).State == schedule.Opened; open != ok {
				t.Fatalf("at %d it is opened: %t", h, open)
			}
		}
	})
}

func TestSyntheticZones(t *testing.T) {
	winter := utc("2026-10-25T01:00:00Z").Unix()
	zone, err := schedule.NewZone("Mine", 7200, schedule.Offset{From: winter, Seconds: 3600}, schedule.Offset{From: winter + 5, Seconds: 3600})
	if err != nil {
		t.Fatal(err)
	}
	oslo := mustZone("Europe/Oslo")
	for at := winter - 7200; at < winter+7200; at += 600 {
		if got, want := zone.Wall(at), oslo.Wall(at); got != want {
			t.Errorf("at %d the wall shows %d, want %d", at, got, want)
		}
		if got, want := zone.Resolve(at+3600), oslo.Resolve(at+3600); got != want {
			t.Errorf("%d on the wall is %d, want %d", at+3600, got, want)
		}
	}
	for want, offsets := range map[string][]schedule.Offset{
		"has a UTC offset of 16h0m1s, which is more than 16 hours": {{From: 0, Seconds: 57601}},
		"has UTC offsets that are not sorted":                      {{From: 1, Seconds: 1}, {From: 0, Seconds: 2}},
		"has two UTC offsets from one instant on":                  {{From: 1, Seconds: 1}, {From: 1, Seconds: 2}},
	} {
		if _, err := schedule.NewZone("Mine", 0, offsets...); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
