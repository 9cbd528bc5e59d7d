package ical_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/ical"
)

const dayLength = 24 * time.Hour

// model is a rule that is evaluated day by day.
type model struct {
	freq                                     string
	interval, count                          int
	until                                    time.Time
	wkst                                     time.Weekday
	months, monthDays, yearDays, weeks, poss []int
	days                                     []modelDay
}

// modelDay is a value of BYDAY.
type modelDay struct {
	nth     int
	weekday time.Weekday
}

func (d modelDay) String() string {
	name := strings.ToUpper(d.weekday.String()[:2])
	if d.nth == 0 {
		return name
	}
	return fmt.Sprint(d.nth, name)
}

func list[T any](key string, values []T) string {
	if len(values) == 0 {
		return ""
	}
	return ";" + key + "=" + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(values), "[]")), ",")
}

func (m model) String() string {
	s := fmt.Sprintf("FREQ=%s;INTERVAL=%d;WKST=%s", m.freq, m.interval, modelDay{weekday: m.wkst})
	if m.count > 0 {
		s += fmt.Sprintf(";COUNT=%d", m.count)
	}
	if !m.until.IsZero() {
		s += ";UNTIL=" + m.until.Format("20060102T150405Z")
	}
	return s + list("BYMONTH", m.months) + list("BYMONTHDAY", m.monthDays) + list("BYYEARDAY", m.yearDays) +
		list("BYWEEKNO", m.weeks) + list("BYDAY", m.days) + list("BYSETPOS", m.poss)
}

// position returns whether ordinals has the i-th of all elements. i counts from 0.
func position(ordinals []int, i, all int) bool {
	return slices.Contains(ordinals, i+1) || slices.Contains(ordinals, i-all)
}

// period returns the number of the period that contains a day, and all days of that period.
func (m model) period(d time.Time) (n int, days []time.Time) {
	var first time.Time
	length := 1
	year, month, _ := d.Date()
	switch m.freq {
	case "DAILY":
		n, first = int(d.Unix()/86400), d
	case "WEEKLY":
		for first = d; first.Weekday() != m.wkst; {
			first = first.Add(-dayLength)
		}
		// All first days have the weekday WKST, so dividing them by 7 numbers the weeks.
		n, length = int(first.Unix()/86400+1000*7)/7, 7
	case "MONTHLY":
		n, first = year*12+int(month), time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
		length = first.AddDate(0, 1, -1).Day()
	default:
		n, first = year, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		length = first.AddDate(1, 0, -1).YearDay()
	}
	for i := range length {
		days = append(days, first.AddDate(0, 0, i))
	}
	return n, days
}

// among returns the position of a day, from 0, among the days of its month or year with the same weekday, and the number of these days.
func among(d time.Time, inMonth bool) (i, all int) {
	year, month, _ := d.Date()
	first, last := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC)
	if inMonth {
		first = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
		last = first.AddDate(0, 1, -1)
	}
	for ; !first.After(last); first = first.Add(dayLength) {
		if first.Weekday() != d.Weekday() {
			continue
		}
		if first.Before(d) {
			i++
		}
		all++
	}
	return i, all
}

func (m model) meets(d, start time.Time) bool {
	year, month, day := d.Date()
	inMonth := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	inYear := time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).YearDay()
	_, week := d.ISOWeek()
	// The 28th of December is always in the last week.
	weekYear, _ := d.ISOWeek()
	_, inWeeks := time.Date(weekYear, 12, 28, 0, 0, 0, 0, time.UTC).ISOWeek()
	byDay := len(m.days) == 0
	for _, wanted := range m.days {
		if wanted.weekday != d.Weekday() {
			continue
		}
		i, all := among(d, m.freq == "MONTHLY" || len(m.months) > 0)
		byDay = byDay || wanted.nth == 0 || position([]int{wanted.nth}, i, all)
	}
	switch {
	case len(m.months) > 0 && !slices.Contains(m.months, int(month)),
		len(m.monthDays) > 0 && !position(m.monthDays, day-1, inMonth),
		len(m.yearDays) > 0 && !position(m.yearDays, d.YearDay()-1, inYear),
		len(m.weeks) > 0 && !position(m.weeks, week-1, inWeeks),
		!byDay:
		return false
	}
	// What the rule does not specify is taken from the start.
	given := len(m.days)+len(m.monthDays)+len(m.yearDays) > 0
	switch {
	case given || m.freq == "DAILY":
		return true
	case m.freq == "WEEKLY" || len(m.weeks) > 0:
		return d.Weekday() == start.Weekday()
	case m.freq == "YEARLY" && len(m.months) == 0:
		return month == start.Month() && day == start.Day()
	}
	return day == start.Day()
}

// follow returns the occurrences before end. start must be midnight.
func (m model) follow(start, end time.Time) []time.Time {
	all := []time.Time{start}
	first, _ := m.period(start)
	for d := start.Add(dayLength); d.Before(end); d = d.Add(dayLength) {
		n, days := m.period(d)
		if (n-first)%m.interval != 0 || !m.meets(d, start) {
			continue
		}
		if len(m.poss) > 0 {
			days = slices.DeleteFunc(days, func(d time.Time) bool { return !m.meets(d, start) })
			if !position(m.poss, slices.IndexFunc(days, d.Equal), len(days)) {
				continue
			}
		}
		if !m.until.IsZero() && d.After(m.until) || m.count > 0 && len(all) == m.count {
			break
		}
		all = append(all, d)
	}
	return all
}

// ordinalsUpTo draws up to four ordinals.
func ordinalsUpTo(t *rapid.T, most int, label string) []int {
	some := rapid.SliceOfN(rapid.IntRange(-most, most).Filter(func(n int) bool { return n != 0 }), 1, 4)
	if rapid.Bool().Draw(t, label+"?") {
		return some.Draw(t, label)
	}
	return nil
}

func drawModel(t *rapid.T, start time.Time) model {
	m := model{
		freq:     rapid.SampledFrom([]string{"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}).Draw(t, "freq"),
		interval: rapid.IntRange(1, 5).Draw(t, "interval"),
		wkst:     time.Weekday(rapid.IntRange(0, 6).Draw(t, "wkst")),
	}
	switch rapid.IntRange(0, 2).Draw(t, "end") {
	case 0:
		m.count = rapid.IntRange(1, 40).Draw(t, "count")
	case 1:
		m.until = start.AddDate(0, 0, rapid.IntRange(0, 1500).Draw(t, "until"))
	}
	if rapid.Bool().Draw(t, "months?") {
		m.months = rapid.SliceOfN(rapid.IntRange(1, 12), 1, 4).Draw(t, "months")
	}
	if m.freq != "WEEKLY" {
		m.monthDays = ordinalsUpTo(t, 31, "month days")
	}
	nth := 0
	switch m.freq {
	case "MONTHLY":
		nth = 5
	case "YEARLY":
		nth = 53
		m.yearDays = ordinalsUpTo(t, 366, "year days")
		if m.weeks = ordinalsUpTo(t, 53, "weeks"); m.weeks != nil {
			m.wkst, m.interval, nth = time.Monday, 1, 0
		}
	}
	if rapid.Bool().Draw(t, "days?") {
		for range rapid.IntRange(1, 4).Draw(t, "days") {
			m.days = append(m.days, modelDay{rapid.IntRange(-nth, nth).Draw(t, "nth"), time.Weekday(rapid.IntRange(0, 6).Draw(t, "day"))})
		}
	}
	if m.weeks == nil && len(m.months)+len(m.monthDays)+len(m.yearDays)+len(m.days) > 0 {
		m.poss = ordinalsUpTo(t, 10, "positions")
	}
	return m
}

// TestRulesMatchModel compares rules with a model that checks each day separately.
func TestRulesMatchModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := utc("2018-01-01T00:00:00Z").AddDate(0, 0, rapid.IntRange(0, 2000).Draw(t, "start"))
		m := drawModel(t, start)
		from := start.AddDate(0, 0, rapid.IntRange(0, 1000).Draw(t, "from"))
		until := from.AddDate(0, 0, rapid.IntRange(1, 1500).Draw(t, "days"))
		text := calendar(event("DTSTART:"+start.Format("20060102T150405"), "DURATION:PT1S", "RRULE:"+m.String()))
		c, err := ical.Read(text, ical.Options{Zone: mustZone("UTC"), From: from, Until: until})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range c.Occurrences {
			got = append(got, o.Start.Format(time.DateOnly))
		}
		var want []string
		for _, at := range m.follow(start, until) {
			if !at.Before(from) {
				want = append(want, at.Format(time.DateOnly))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s from %s on: got\n%q, want\n%q", m, start.Format(time.DateOnly), got, want)
		}
	})
}
