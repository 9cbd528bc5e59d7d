package schedule_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// planSpec is a plan before it is compiled, for tests that make plans up. A
// range that is zero at both ends is none.
type planSpec struct {
	opened              bool
	notBefore, notAfter time.Time
	windows, soft, hard []periodSpec
	open, close         [2]time.Time
	exceptions          []exceptionSpec
}

// periodSpec is a period in the words of the API. Its fields decide on its
// form: a schedule, a start, or neither.
type periodSpec struct {
	name, zone  string
	days        []time.Weekday
	weeks       []schedule.WeekOfMonth
	daysOfMonth []int
	workdays    []int
	everyWeeks  int
	anchor      time.Time
	start, end  string
	schedule    string
	duration    time.Duration
	from, until time.Time
}

func (p periodSpec) String() string {
	switch {
	case p.schedule != "":
		return fmt.Sprintf("%s: %q for %s in %s", p.name, p.schedule, p.duration, p.zone)
	case p.start != "":
		return fmt.Sprintf("%s: %v of weeks %v, days %v, workdays %v, every %d weeks from %s, %s-%s in %s",
			p.name, p.days, p.weeks, p.daysOfMonth, p.workdays, p.everyWeeks, p.anchor.Format(time.DateOnly), p.start, p.end, p.zone)
	}
	return fmt.Sprintf("%s: %s to %s", p.name, p.from.Format(time.RFC3339), p.until.Format(time.RFC3339))
}

func (p periodSpec) compile() schedule.Period {
	var made schedule.Period
	var err error
	switch {
	case p.schedule != "":
		var c schedule.CronExpression
		if c, err = schedule.ParseCron(p.schedule); err == nil {
			made, err = schedule.Cron(p.name, c, p.duration, mustZone(p.zone))
		}
	case p.start != "":
		var start, end schedule.TimeOfDay
		if start, err = schedule.ParseTimeOfDay(p.start); err == nil {
			end, err = schedule.ParseEndOfDay(p.end)
		}
		made = schedule.Weekly(p.name, schedule.Days{
			Weekdays: p.days, Weeks: p.weeks, OfMonth: p.daysOfMonth, WorkdaysOfMonth: p.workdays, EveryWeeks: p.everyWeeks, Anchor: p.anchor.Unix() / 86400,
		}, start, end, mustZone(p.zone))
	default:
		made, err = schedule.Dated(p.name, p.from, p.until)
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", p, err))
	}
	return made
}

func compileAll(specs []periodSpec) (periods []schedule.Period) {
	for _, p := range specs {
		periods = append(periods, p.compile())
	}
	return periods
}

func (s planSpec) config() schedule.Config {
	c := schedule.Config{
		NotBefore: s.notBefore, NotAfter: s.notAfter,
		OpenPeriods: compileAll(s.windows), ClosePeriods: compileAll(s.soft), HardClosePeriods: compileAll(s.hard),
	}
	for _, e := range s.exceptions {
		c.Exceptions = append(c.Exceptions, e.compile())
	}
	if s.opened {
		c.Default = schedule.Opened
	}
	if s.open != [2]time.Time{} {
		c.Open = []schedule.Period{periodSpec{name: "open", from: s.open[0], until: s.open[1]}.compile()}
	}
	if s.close != [2]time.Time{} {
		c.Close = []schedule.Period{periodSpec{name: "close", from: s.close[0], until: s.close[1]}.compile()}
	}
	return c
}

// random makes up specs around an instant from numbers in [0, n).
type random struct {
	intn   func(n int) int
	around time.Time
	zones  []string
	count  int
}

func pick[T any](r *random, of ...T) T { return of[r.intn(len(of))] }

func (r *random) chance(percent int) bool { return r.intn(100) < percent }

func (r *random) plan() planSpec {
	s := planSpec{opened: r.chance(40)}
	s.windows = r.periods(pick(r, 0, 1, 1, 2, 3))
	s.soft = r.periods(pick(r, 0, 0, 1, 2))
	s.hard = r.periods(pick(r, 0, 0, 0, 1))
	if r.chance(20) {
		s.notBefore = r.minute()
	}
	if r.chance(20) {
		s.notAfter = r.minute()
	}
	if r.chance(25) {
		s.open = r.span()
	}
	if r.chance(25) {
		s.close = r.span()
	}
	if r.chance(40) {
		for range pick(r, 1, 1, 2, 3) {
			s.exceptions = append(s.exceptions, r.exception())
		}
	}
	return s
}

func (r *random) periods(n int) (specs []periodSpec) {
	for range n {
		specs = append(specs, r.period())
	}
	return specs
}

func (r *random) period() periodSpec {
	r.count++
	p := periodSpec{name: fmt.Sprintf("p%d", r.count), zone: r.zones[0]}
	if r.chance(15) {
		p.zone = pick(r, r.zones...)
	}
	switch n := r.intn(100); {
	case n < 45:
		for d := time.Sunday; d <= time.Saturday; d++ {
			if r.chance(45) {
				p.days = append(p.days, d)
			}
		}
		r.restrict(&p)
		p.start, p.end = r.timeOfDay(), r.timeOfDay()
		if r.chance(10) {
			p.end = "24:00"
		}
	case n < 90:
		p.schedule = r.cron()
		p.duration = pick[time.Duration](r, 1, 10, 30, 60, 61, 90, 8*60, 24*60, 25*60, 36*60, 3*24*60) * time.Minute
	default:
		span := r.span()
		p.from, p.until = span[0], span[1]
	}
	return p
}

// restrict limits a weekly period to some days, in half of the cases to days near r.around.
func (r *random) restrict(p *periodSpec) {
	number := func(most, place int) int {
		if r.chance(50) {
			return place + pick(r, -1, 0, 0, 1)
		}
		return pick(r, 1, -1) * (1 + r.intn(most))
	}
	switch n := r.intn(100); {
	case n < 30:
		for w := schedule.First; w <= schedule.Last; w++ {
			if r.chance(40) {
				p.weeks = append(p.weeks, w)
			}
		}
	case n < 45:
		p.days = nil
		for range pick(r, 1, 2, 3, 31) {
			if n := number(31, r.around.Day()); n >= -31 && n <= 31 && n != 0 {
				p.daysOfMonth = append(p.daysOfMonth, n)
			}
		}
	case n < 60:
		p.days = nil
		for range pick(r, 1, 2, 23) {
			if n := number(23, r.around.Day()*5/7); n >= -23 && n <= 23 && n != 0 {
				p.workdays = append(p.workdays, n)
			}
		}
	case n < 75:
		p.everyWeeks = 2 + r.intn(pick(r, 1, 3, schedule.MaxEveryWeeks-1))
		p.anchor = r.around.UTC().Truncate(24*time.Hour).AddDate(0, 0, pick(r, 0, 7, -7, 7*p.everyWeeks, -7*p.everyWeeks, r.intn(40000)-20000)+r.intn(7))
	}
}

func (r *random) timeOfDay() string {
	if r.chance(60) {
		return pick(r, "00:00", "00:01", "00:30", "01:00", "01:30", "02:00", "02:30", "03:00", "22:00", "23:00", "23:30")
	}
	return fmt.Sprintf("%02d:%02d", r.intn(24), r.intn(60))
}

// minute is one of the four days before and after.
func (r *random) minute() time.Time {
	return r.around.Truncate(time.Minute).Add(time.Duration(r.intn(8*24*60)-4*24*60) * time.Minute)
}

func (r *random) span() [2]time.Time {
	from := r.minute()
	return [2]time.Time{from, from.Add(time.Duration(1+r.intn(3*24*60)) * time.Minute)}
}

// cron is an expression that fires.
func (r *random) cron() string {
	for {
		fields := []string{r.field(0, 59, 10), r.hours(), "*", "*", "*"}
		if r.chance(25) {
			fields[2] = r.field(1, 31, 20)
		}
		if r.chance(15) {
			fields[3] = pick(r, r.field(1, 12, 30), fmt.Sprint(int(r.around.Month())))
		}
		if r.chance(35) {
			fields[4] = r.field(0, 6, 20)
		}
		expression := strings.Join(fields, " ")
		if r.chance(10) {
			expression = strings.ReplaceAll(expression, " ", "\t ")
		}
		if _, err := schedule.ParseCron(expression); err == nil {
			return expression
		}
	}
}

// hours returns an hour field; a star in it determines whether a repeated hour counts twice.
func (r *random) hours() string {
	if r.chance(10) {
		return pick(r, "0-23", "1-23", "0/1", "*,3", "3,*", "?,0-4", "*/2,1")
	}
	return r.field(0, 23, 35)
}

// field is one of a cron expression.
func (r *random) field(low, high, stars int) string {
	if r.chance(stars) {
		return pick(r, "*", "*", "?", "*/1")
	}
	n := func() int { return low + r.intn(high-low+1) }
	from, until := n(), n()
	from, until = min(from, until), max(from, until)
	step := 1 + r.intn(high)
	return pick(r,
		fmt.Sprint(from),
		fmt.Sprintf("%d,%d", until, from),
		fmt.Sprintf("%d-%d", from, until),
		fmt.Sprintf("%d-%d/%d", from, until, step),
		fmt.Sprintf("%d/%d", from, step),
		fmt.Sprintf("*/%d", step),
		fmt.Sprintf("%d-%d,%d/%d", from, until, low, step),
	)
}
