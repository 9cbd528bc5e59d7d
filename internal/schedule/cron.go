package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// horizon is how far ahead recurring periods are searched. The longest time between two ticks of a cron expression is the eight years
// between the leap days before and after a year such as 2100.
const horizon = 9 * 366 * day

// CronExpression is a parsed cron expression of five fields.
type CronExpression struct {
	ticks ticks
	steps []Step
}

// ticks holds the fields of a cron expression as bit sets, parsed by robfig/cron. They are evaluated here, because robfig/cron loses ticks
// in gaps of local time.
type ticks struct {
	minutes, hours, daysOfMonth, months, daysOfWeek uint64
	// eitherDay is true if a day matches by day of month or by day of week, as in cron if both fields are restricted, see crontab(5).
	eitherDay bool
	// both is true if the job runs in both occurrences of a repeated hour. In cron, an hourly job does, and a job at specific hours runs only
	// in the first occurrence.
	both bool
	// gap is the longest wall-clock time in seconds between two ticks, if all days match.
	gap int64
}

// starBit marks a field written as "*" in cron.SpecSchedule.
const starBit = 1 << 63

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// ParseCron parses a standard cron expression of five fields. It refuses time zones (the period has a field for that), descriptors such as
// @every or @daily, and expressions that never fire. Sunday is 0 or 7.
func ParseCron(expression string) (CronExpression, error) {
	// robfig/cron panics on some zone prefixes, with all options.
	if strings.Contains(expression, "=") {
		return CronExpression{}, errors.New("must not contain a time zone (TZ= or CRON_TZ=), use the field timeZone")
	}
	if strings.HasPrefix(strings.TrimSpace(expression), "@") {
		return CronExpression{}, errors.New("descriptors such as @every or @daily are not supported, use the five fields minute, hour, day of month, month, day of week")
	}
	// robfig/cron parses these as *, which may be more than intended.
	if strings.Contains(expression, "*-") || strings.Contains(expression, "?-") {
		return CronExpression{}, errors.New("is not a cron expression of five fields: a range needs a number before the dash")
	}
	parsed, err := cronParser.Parse(withSundayAsZero(expression))
	if err != nil {
		return CronExpression{}, fmt.Errorf("is not a cron expression of five fields: %w", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return CronExpression{}, errors.New("is not a cron expression of five fields")
	}
	steps := stepsOf(expression)
	if i := slices.IndexFunc(steps, func(s Step) bool { return s.Step > s.Values }); i >= 0 {
		return CronExpression{}, fmt.Errorf("has the step %d for the %s, which has only %d values: it would fire only at the first of them", steps[i].Step, steps[i].Field, steps[i].Values)
	}
	t := ticks{
		minutes:     spec.Minute &^ starBit,
		hours:       spec.Hour &^ starBit,
		daysOfMonth: spec.Dom &^ starBit,
		months:      spec.Month &^ starBit,
		daysOfWeek:  spec.Dow &^ starBit,
		eitherDay:   spec.Dom&starBit == 0 && spec.Dow&starBit == 0,
		both:        beginsWithStar(strings.Fields(expression)[1]),
	}
	// robfig/cron parses a single comma as an empty list.
	if t.minutes == 0 || t.hours == 0 || t.daysOfMonth == 0 || t.months == 0 || t.daysOfWeek == 0 {
		return CronExpression{}, errors.New("is not a cron expression of five fields: one of them is an empty list")
	}
	if t.nextWall(0, horizon) == never {
		return CronExpression{}, errors.New("never fires")
	}
	t.gap = t.longestGap()
	return CronExpression{ticks: t, steps: steps}, nil
}

// sunday is the number of Sunday as the last day of a week. robfig/cron supports only 0.
const sunday = 7

var (
	cronParts = regexp.MustCompile(`\S+`)
	weekRange = regexp.MustCompile(`^([0-7])(?:-([0-7]))?(?:/([0-9]{1,2}))?$`)
)

// withSundayAsZero returns a cron expression in which Sunday is 0 instead of 7: 5-7 becomes 5,6,0. Malformed expressions are unchanged.
func withSundayAsZero(expression string) string {
	fields := cronParts.FindAllStringIndex(expression, -1)
	if len(fields) != len(cronFields) {
		return expression
	}
	week := fields[len(fields)-1]
	items := strings.Split(expression[week[0]:week[1]], ",")
	for i, item := range items {
		items[i] = daysUntilSunday(item)
	}
	return expression[:week[0]] + strings.Join(items, ",") + expression[week[1]:]
}

// daysUntilSunday replaces a list item that contains day 7 with a list of its days, as numbers from 0 to 6. It returns other items
// unchanged.
func daysUntilSunday(item string) string {
	found := weekRange.FindStringSubmatch(item)
	if found == nil || !strings.Contains(found[1]+found[2], strconv.Itoa(sunday)) {
		return item
	}
	first, _ := strconv.Atoi(found[1])
	step, _ := strconv.Atoi(cmp.Or(found[3], "1"))
	switch {
	case step == 0 || found[2] != "" && found[2] < found[1]:
		return item // robfig/cron refuses it
	case found[2] == "":
		return "0"
	}
	var days []string
	for day := first; day <= sunday; day += step {
		days = append(days, strconv.Itoa(day%sunday))
	}
	return strings.Join(days, ",")
}

// Step is a step in a field of a cron expression, such as 7 in */7.
type Step struct {
	// Field is the name of the field, and Values is the number of values that it can have.
	Field  string
	Values int
	Step   int
}

var cronFields = []Step{{Field: "minute", Values: 60}, {Field: "hour", Values: 24}, {Field: "day of month", Values: 31}, {Field: "month", Values: 12}, {Field: "day of week", Values: 7}}

// stepsOf returns the steps in a cron expression that continue to the end of their field.
func stepsOf(expression string) (steps []Step) {
	for i, text := range strings.Fields(expression) {
		for part := range strings.SplitSeq(text, ",") {
			values, step, ok := strings.Cut(part, "/")
			n, err := strconv.Atoi(step)
			if !ok || err != nil || strings.Contains(values, "-") && n <= cronFields[i].Values {
				continue
			}
			of := cronFields[i]
			of.Step = n
			steps = append(steps, of)
		}
	}
	return steps
}

// UnevenSteps returns the steps that do not divide the range of their field, so that the last interval is shorter than the others.
func (c CronExpression) UnevenSteps() (uneven []Step) {
	for _, s := range c.steps {
		if s.Values%s.Step != 0 {
			uneven = append(uneven, s)
		}
	}
	return uneven
}

// EitherDay returns whether the expression restricts both the day of month and the day of week, so that a day counts if it matches one of
// them. See ticks.
func (c CronExpression) EitherDay() bool { return c.ticks.eitherDay }

// beginsWithStar returns whether cron daemons treat a field as unrestricted, see entry.c of Vixie cron: */2 and *,3 are, 0-23 and 3,* are
// not. robfig/cron treats the question mark as a star.
func beginsWithStar(field string) bool { return field[0] == '*' || field[0] == '?' }

// previous returns the last tick at or before t, or always if there is none.
func (c *ticks) previous(z *Zone, t int64) int64 {
	limit := t - horizon
	for i := z.at(t); i >= 0 && z.spans[i].end > limit; i-- {
		s := &z.spans[i]
		tick := c.previousIn(max(c.begin(s), limit), min(t, s.end-1), s.offset)
		if end := s.gapEnd(); tick < end && s.start < end {
			tick = max(tick, c.previousIn(s.start, min(t, end-1), s.before))
		}
		if tick != always {
			return tick
		}
	}
	return always
}

// next returns the first tick after t, or never if there is none.
func (c *ticks) next(z *Zone, t int64) int64 {
	limit := t + horizon
	for i := z.at(t); i < len(z.spans) && z.spans[i].start < limit; i++ {
		s := &z.spans[i]
		tick := c.nextIn(max(t+1, c.begin(s)), min(s.end, limit), s.offset)
		if from, end := max(t+1, s.start), s.gapEnd(); from < end {
			tick = min(tick, c.nextIn(from, end, s.before))
		}
		if tick != never {
			return tick
		}
	}
	return never
}

// begin returns the instant at which ticks of a span start to count. This is the start of the span, or the end of the wall-clock times that
// it repeats if ticks in repeated times do not count again.
func (c *ticks) begin(s *offsetSpan) int64 {
	if c.both {
		return s.start
	}
	return s.repeatEnd()
}

// nextIn returns the first tick in [from, until) at a UTC offset, or never if there is none.
func (c *ticks) nextIn(from, until, offset int64) int64 {
	wall := c.nextWall(from+offset, until+offset)
	if wall == never {
		return never
	}
	return wall - offset
}

// previousIn returns the last tick in [from, last] at a UTC offset, or always if there is none.
func (c *ticks) previousIn(from, last, offset int64) int64 {
	wall := c.previousWall(from+offset, last+offset)
	if wall == always {
		return always
	}
	return wall - offset
}

// run returns the end of an interval that starts with a tick and in which ticks are at most gap apart, because all of its days match and
// have the same UTC offset. A search can skip these ticks.
func (c *ticks) run(z *Zone, tick int64) int64 {
	span := z.spans[z.at(tick)]
	if c.everyDay() {
		return span.end
	}
	d := floorDiv(tick+span.offset, day)
	last := d + horizon/day
	for date := civil(d); d < last && c.months&(1<<date.month) != 0 && c.matches(d, date.day); d++ {
		if date.day++; date.day > date.daysIn() {
			date = civil(d + 1)
		}
	}
	return min(d*day-span.offset, span.end)
}

// everyDay returns whether all days match.
func (c *ticks) everyDay() bool {
	return c.months == 1<<13-1<<1 && c.daysOfMonth == 1<<32-1<<1 && c.daysOfWeek == uint64(everyDay)
}

// everyHour returns whether ticks depend on the minute only, so that a repeated hour needs no special treatment.
func (c *ticks) everyHour() bool { return c.both && c.hours == 1<<24-1 && c.everyDay() }

// nextWall returns the first tick in [from, until) on the wall clock, or never if there is none.
func (c *ticks) nextWall(from, until int64) int64 {
	from = floorDiv(from+minute-1, minute) * minute
	d := floorDiv(from, day)
	second := from - d*day
	for date := civil(d); d*day < until; {
		if c.months&(1<<date.month) == 0 {
			d += int64(date.daysIn() - date.day + 1)
			date, second = civil(d), 0
			continue
		}
		if c.matches(d, date.day) {
			if t, ok := c.firstFrom(second); ok {
				if t += d * day; t < until {
					return t
				}
				return never
			}
		}
		d, second = d+1, 0
		if date.day++; date.day > date.daysIn() {
			date = civil(d)
		}
	}
	return never
}

// previousWall returns the last tick in [from, last] on the wall clock, or always if there is none.
func (c *ticks) previousWall(from, last int64) int64 {
	d := floorDiv(last, day)
	second := last - d*day
	for date := civil(d); (d+1)*day > from; {
		if c.months&(1<<date.month) == 0 {
			d -= int64(date.day)
			date, second = civil(d), day-1
			continue
		}
		if c.matches(d, date.day) {
			if t, ok := c.lastUntil(second); ok {
				if t += d * day; t >= from {
					return t
				}
				return always
			}
		}
		d, second = d-1, day-1
		if date.day--; date.day == 0 {
			date = civil(d)
		}
	}
	return always
}

func (c *ticks) matches(d int64, dayOfMonth int) bool {
	byMonth := c.daysOfMonth&(1<<dayOfMonth) != 0
	byWeek := c.daysOfWeek&(1<<weekday(d)) != 0
	if c.eitherDay {
		return byMonth || byWeek
	}
	return byMonth && byWeek
}

func (c *ticks) longestGap() int64 {
	within, first, last := widest(c.minutes)
	hours, firstHour, lastHour := widest(c.hours)
	hours = max(hours, firstHour+24-lastHour)
	return max(within*minute, hours*hour-(last-first)*minute)
}

// widest returns the largest distance between neighbors in a set of numbers, and the first and the last number.
func widest(set uint64) (distance, first, last int64) {
	first = int64(bits.TrailingZeros64(set))
	last = first
	for set &= set - 1; set != 0; set &= set - 1 {
		n := int64(bits.TrailingZeros64(set))
		distance, last = max(distance, n-last), n
	}
	return distance, first, last
}

// firstFrom returns the first tick of a day at or after a second of the day. It returns false if there is none.
func (c *ticks) firstFrom(second int64) (int64, bool) {
	h, m := second/hour, second%hour/minute
	if c.hours&(1<<h) != 0 {
		if rest := c.minutes >> m << m; rest != 0 {
			return h*hour + int64(bits.TrailingZeros64(rest))*minute, true
		}
	}
	rest := c.hours >> (h + 1) << (h + 1)
	if rest == 0 {
		return 0, false
	}
	return int64(bits.TrailingZeros64(rest))*hour + int64(bits.TrailingZeros64(c.minutes))*minute, true
}

// lastUntil returns the last tick of a day at or before a second of the day. It returns false if there is none.
func (c *ticks) lastUntil(second int64) (int64, bool) {
	h, m := second/hour, second%hour/minute
	if c.hours&(1<<h) != 0 {
		if rest := c.minutes & (1<<(m+1) - 1); rest != 0 {
			return h*hour + int64(63-bits.LeadingZeros64(rest))*minute, true
		}
	}
	rest := c.hours & (1<<h - 1)
	if rest == 0 {
		return 0, false
	}
	return int64(63-bits.LeadingZeros64(rest))*hour + int64(63-bits.LeadingZeros64(c.minutes))*minute, true
}
