package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

var benchNow = utc("2026-06-03T12:34:56Z")

// periods returns n of all three forms in several zones, none of them covering
// benchNow.
func periods(n int) []schedule.Period {
	zones := []string{"Europe/Oslo", "America/New_York", "Asia/Tokyo", "UTC"}
	made := make([]schedule.Period, 0, n)
	for i := range n {
		zone := zones[i%len(zones)]
		switch i % 3 {
		case 0:
			made = append(made, weekly(zone, fmt.Sprintf("01:%02d", i%60), "03:00", weekdays...))
		case 1:
			made = append(made, cron(zone, fmt.Sprintf("%d 4 * * FRI", i%60), time.Hour))
		default:
			made = append(made, dated("", fmt.Sprintf("2027-01-01T00:%02d:00Z", i%60), "2027-01-02T00:00:00Z"))
		}
	}
	return made
}

// BenchmarkYardstick is what others do for a single cron, to compare with.
func BenchmarkYardstick(b *testing.B) {
	for _, expression := range []string{"0 4 * * FRI", "* * * * *"} {
		b.Run("robfig next of "+expression, func(b *testing.B) {
			c, err := robfig.ParseStandard(expression)
			if err != nil {
				b.Fatal(err)
			}
			c.(*robfig.SpecSchedule).Location = location(b, "Europe/Oslo") //nolint:forcetypeassert // it is not @every
			b.ReportAllocs()
			for b.Loop() {
				c.Next(benchNow)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	windows := func(p ...schedule.Period) schedule.Config { return schedule.Config{OpenPeriods: p} }
	ten := periods(10)
	for _, tt := range []struct {
		name   string
		config schedule.Config
	}{
		{"1 weekly", windows(weekly("Europe/Oslo", "22:00", "05:00", weekdays...))},
		{"1 weekly on the first Tuesday", windows(monthly("Europe/Oslo", "22:00", "05:00", []schedule.WeekOfMonth{schedule.First}, time.Tuesday))},
		{"1 weekly on all days of the last week", windows(monthly("Europe/Oslo", "22:00", "05:00", []schedule.WeekOfMonth{schedule.Last}))},
		{"1 weekly on the 31st", windows(periodSpec{name: "p", zone: "Europe/Oslo", start: "22:00", end: "05:00", daysOfMonth: []int{31}}.compile())},
		{"1 weekly on the 23rd workday", windows(rarest())},
		{"1 weekly every 26 weeks", windows(periodSpec{name: "p", zone: "Europe/Oslo", start: "22:00", end: "05:00", days: []time.Weekday{time.Tuesday}, everyWeeks: 26, anchor: benchNow}.compile())},
		{"1 cron", windows(cron("Europe/Oslo", "0 4 * * FRI", time.Hour))},
		{"10 periods", schedule.Config{OpenPeriods: ten[:6], ClosePeriods: ten[6:8], HardClosePeriods: ten[8:]}},
		{"100 periods", windows(periods(100)...)},
		{"minutely for 8760h", windows(cron("Europe/Oslo", "* * * * *", 8760*time.Hour))},
		{"minutely for 1m in UTC", windows(cron("UTC", "* * * * *", time.Minute))},
		{"minutely for 1m", windows(cron("Europe/Oslo", "* * * * *", time.Minute))},
		{"minutely for 1m but in December", windows(cron("UTC", "* * * 1-11 *", time.Minute))},
		{"daily for 24h in UTC", windows(cron("UTC", "0 0 * * *", 24*time.Hour))},
		{"daily for 25h", windows(cron("Europe/Oslo", "0 0 * * *", 25*time.Hour))},
		{"weekly, all day on all days", windows(weekly("Europe/Oslo", "00:00", "24:00"))},
		{"weekly, two halves of all days", windows(weekly("Europe/Oslo", "00:00", "12:00"), weekly("Europe/Oslo", "12:00", "24:00"))},
		{"windows within close periods", schedule.Config{
			OpenPeriods:  []schedule.Period{weekly("Europe/Oslo", "03:00", "04:00")},
			ClosePeriods: []schedule.Period{weekly("Europe/Oslo", "01:00", "05:00")},
		}},
		{"10 weekly windows of an expired gate", schedule.Config{NotAfter: utc("2026-01-01T00:00:00Z"), OpenPeriods: weeklies(10)}},
		{"a calendar of 5000 events", windows(fiveThousand(2))},
		{"a calendar of 5000 events that touch", windows(fiveThousand(3))},
		{"leap day", windows(cron("Europe/Oslo", "0 0 29 2 *", time.Hour))},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newPlan(tt.config).Decide(benchNow)
			}
		})
	}
}

// fiveThousand returns a calendar of events every three hours around benchNow.
func fiveThousand(hours int) schedule.Period {
	var all []schedule.CalendarEvent
	for i := range 5000 {
		at := benchNow.Add(time.Duration(i-500) * 3 * time.Hour)
		all = append(all, schedule.CalendarEvent{Start: at, End: at.Add(time.Duration(hours) * time.Hour), Name: fmt.Sprint(i)})
	}
	return schedule.Calendar("calendar", all)
}

func weeklies(n int) (made []schedule.Period) {
	for i := range n {
		made = append(made, weekly("Europe/Oslo", fmt.Sprintf("%02d:30", i), fmt.Sprintf("%02d:00", i+1), weekdays...))
	}
	return made
}

// rarest returns the weekly period with the longest distance of two of its days.
func rarest() schedule.Period {
	return periodSpec{name: "rarest", zone: "Europe/Oslo", start: "22:00", end: "05:00", workdays: []int{23}}.compile()
}

// BenchmarkCompile reads a plan of ten periods from their texts.
func BenchmarkCompile(b *testing.B) {
	b.Run("10 periods", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newPlan(schedule.Config{OpenPeriods: periods(10)})
		}
	})
	b.Run("10 minutely crons", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var all []schedule.Period
			for range 10 {
				all = append(all, cron("Europe/Oslo", "* * * * *", time.Minute))
			}
			newPlan(schedule.Config{OpenPeriods: all})
		}
	})
}

// excepted is a plan with an exception of 90 days around benchNow.
func excepted(e schedule.Exception, windows ...schedule.Period) schedule.Config {
	e.Name, e.From, e.Until = "x", benchNow.AddDate(0, 0, -45), benchNow.AddDate(0, 0, 45)
	return schedule.Config{OpenPeriods: windows, Exceptions: []schedule.Exception{e}}
}

// exceptedPlans are plans with exceptions, usual ones first.
func exceptedPlans() []struct {
	name   string
	config schedule.Config
} {
	const all = 90 * 24 * time.Hour
	nights := weekly("Europe/Oslo", "22:00", "05:00", weekdays...)
	saturdays := []schedule.Period{weekly("Europe/Oslo", "21:00", "02:00", time.Saturday)}
	odd, even := cron("Europe/Oslo", "1-59/2 * * * *", time.Minute), cron("Europe/Oslo", "*/2 * * * *", time.Minute)
	hundred := func(p schedule.Period) []schedule.Period { return slices.Repeat([]schedule.Period{p}, 100) }
	return []struct {
		name   string
		config schedule.Config
	}{
		{"open", excepted(schedule.Exception{OpenPeriods: saturdays}, nights)},
		{"close with a lead", excepted(schedule.Exception{Lead: time.Hour, ClosePeriods: saturdays}, nights)},
		{"open and a default", excepted(schedule.Exception{OpenPeriods: saturdays, Default: state(schedule.Closed)}, nights)},
		{"10 periods, closed by 10 with a lead", excepted(schedule.Exception{Lead: time.Hour, ClosePeriods: periods(10)}, periods(10)...)},
		{"every other minute, close the others with a lead of 90 days", excepted(
			schedule.Exception{Lead: all, ClosePeriods: []schedule.Period{even}}, odd,
		)},
		{"every other minute, close the same with a lead of a minute", excepted(
			schedule.Exception{Lead: time.Minute, ClosePeriods: []schedule.Period{odd}}, odd,
		)},
		{"100 of every other minute, close by 100 with a lead of 90 days", excepted(
			schedule.Exception{Lead: all, ClosePeriods: hundred(even)}, hundred(odd)...,
		)},
	}
}

func BenchmarkExceptions(b *testing.B) {
	for _, tt := range exceptedPlans() {
		b.Run("compile "+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newPlan(tt.config)
			}
		})
		b.Run("compile and decide "+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newPlan(tt.config).Decide(benchNow)
			}
		})
	}
}

func BenchmarkIntervals(b *testing.B) {
	b.Run("10 periods in 366 days", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n = 0
			for range newPlan(schedule.Config{OpenPeriods: periods(10)}).Intervals(benchNow, benchNow.AddDate(0, 0, 366)) {
				n++
			}
		}
		b.ReportMetric(float64(n), "intervals/op")
	})
}

func TestDecideDoesNotAllocate(t *testing.T) {
	plan := newPlan(schedule.Config{OpenPeriods: periods(10), ClosePeriods: []schedule.Period{fiveThousand(2)}})
	if n := testing.AllocsPerRun(100, func() { plan.Decide(benchNow) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	for _, tt := range exceptedPlans()[:5] {
		plan := newPlan(tt.config)
		if n := testing.AllocsPerRun(10, func() { plan.Decide(benchNow) }); n > 0 {
			t.Errorf("%v allocations for %s", n, tt.name)
		}
	}
}
