package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/robfig/cron/v3"
)

// horizon is how far ahead recurring periods are looked at: the longest time
// between two ticks of a cron is the eight years between the leap days around
// a year such as 2100.
const horizon = 9 * 366 * day

// CronExpression is a parsed cron expression of five fields.
type CronExpression struct {
	ticks ticks
}

// ticks has the fields of a cron expression as bit sets, as robfig/cron parses
// them. Its evaluation of them is not used: it loses ticks in a gap.
type ticks struct {
	minutes, hours, daysOfMonth, months, daysOfWeek uint64
	// eitherDay is cron's rule that a day matches by day of month or by day of
	// week if both are restricted, see crontab(5).
	eitherDay bool
	// gap is the longest time on the wall clock between two ticks while all days
	// match.
	gap int64
}

// starBit marks a field written as "*" in cron.SpecSchedule.
const starBit = 1 << 63

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// ParseCron parses a standard cron expression of five fields. It refuses a time
// zone inside of it (the period has a field for it), descriptors such as @every
// or @daily, and an expression that never fires.
func ParseCron(expression string) (CronExpression, error) {
	// robfig/cron panics on some zone prefixes, whatever its options.
	if strings.Contains(expression, "=") {
		return CronExpression{}, errors.New("must not contain a time zone (TZ= or CRON_TZ=), use the field timeZone")
	}
	if strings.HasPrefix(strings.TrimSpace(expression), "@") {
		return CronExpression{}, errors.New("descriptors such as @every or @daily are not supported, use the five fields minute, hour, day of month, month, day of week")
	}
	// robfig/cron reads this as a mere *, which may be more than is meant.
	if strings.Contains(expression, "*-") {
		return CronExpression{}, errors.New("is not a cron expression of five fields: a range needs a number before the dash")
	}
	parsed, err := cronParser.Parse(expression)
	if err != nil {
		return CronExpression{}, fmt.Errorf("is not a cron expression of five fields: %w", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return CronExpression{}, errors.New("is not a cron expression of five fields")
	}
	t := ticks{
		minutes:     spec.Minute &^ starBit,
		hours:       spec.Hour &^ starBit,
		daysOfMonth: spec.Dom &^ starBit,
		months:      spec.Month &^ starBit,
		daysOfWeek:  spec.Dow &^ starBit,
		eitherDay:   spec.Dom&starBit == 0 && spec.Dow&starBit == 0,
	}
	// robfig/cron takes a lone comma for a list of nothing.
	if t.minutes == 0 || t.hours == 0 || t.daysOfMonth == 0 || t.months == 0 || t.daysOfWeek == 0 {
		return CronExpression{}, errors.New("is not a cron expression of five fields: one of them is an empty list")
	}
	if t.nextWall(0) == never {
		return CronExpression{}, errors.New("never fires")
	}
	t.gap = t.longestGap()
	return CronExpression{ticks: t}, nil
}

// previous returns the last tick at or before t, or always if there is none.
func (c *ticks) previous(z *Zone, t int64) int64 {
	_, high := z.offsets(t-2*day, t+2*day)
	best, low := always, int64(0)
	for wall := c.previousWall(t + high); wall != always; wall = c.previousWall(wall - minute) {
		if best != always && wall-low <= best {
			break
		}
		tick := z.resolve(wall)
		if tick > t || tick <= best {
			continue
		}
		best = tick
		// Only near a transition can an earlier wall-clock time be a later instant.
		if low, high = z.offsets(best-2*day, best+2*day); low == high {
			break
		}
	}
	return best
}

// next returns the first tick after t, or never if there is none.
func (c *ticks) next(z *Zone, t int64) int64 {
	low, high := z.offsets(t-2*day, t+2*day)
	best := never
	for wall := c.nextWall(t + low); wall != never; wall = c.nextWall(wall + minute) {
		if best != never && wall-high >= best {
			break
		}
		tick := z.resolve(wall)
		if tick <= t || tick >= best {
			continue
		}
		best = tick
		if low, high = z.offsets(best-2*day, best+2*day); low == high {
			break
		}
	}
	return best
}

// run returns the end of a stretch of time, from a tick on, in which ticks follow
// each other at a distance of at most gap: days that match without a break and
// a single UTC offset. It saves a search the single ticks of the stretch.
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

// nextWall returns the first tick on the wall clock at or after wall.
func (c *ticks) nextWall(wall int64) int64 {
	wall = floorDiv(wall+minute-1, minute) * minute
	d := floorDiv(wall, day)
	last := d + horizon/day
	from := wall - d*day
	date := civil(d)
	for d <= last {
		if c.months&(1<<date.month) == 0 {
			d += int64(date.daysIn() - date.day + 1)
			date, from = civil(d), 0
			continue
		}
		if c.matches(d, date.day) {
			if t, ok := c.firstFrom(from); ok {
				return d*day + t
			}
		}
		d, from = d+1, 0
		if date.day++; date.day > date.daysIn() {
			date = civil(d)
		}
	}
	return never
}

// previousWall returns the last tick on the wall clock at or before wall.
func (c *ticks) previousWall(wall int64) int64 {
	d := floorDiv(wall, day)
	first := d - horizon/day
	until := wall - d*day
	date := civil(d)
	for d >= first {
		if c.months&(1<<date.month) == 0 {
			d -= int64(date.day)
			date, until = civil(d), day-1
			continue
		}
		if c.matches(d, date.day) {
			if t, ok := c.lastUntil(until); ok {
				return d*day + t
			}
		}
		d, until = d-1, day-1
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

// widest returns the longest distance of two neighbours in a set of numbers, and
// its first and last one.
func widest(set uint64) (distance, first, last int64) {
	first = int64(bits.TrailingZeros64(set))
	last = first
	for set &= set - 1; set != 0; set &= set - 1 {
		n := int64(bits.TrailingZeros64(set))
		distance, last = max(distance, n-last), n
	}
	return distance, first, last
}

// firstFrom returns the first tick of a day at or after a second of it.
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

// lastUntil returns the last tick of a day at or before a second of it.
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
