package ical

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// frequency is the length of a period of a rule.
type frequency uint8

const (
	daily frequency = iota
	weekly
	monthly
	yearly
)

var frequencies = map[string]frequency{"DAILY": daily, "WEEKLY": weekly, "MONTHLY": monthly, "YEARLY": yearly}

// rule is a parsed RRULE.
type rule struct {
	frequency frequency
	interval  int64
	// count is COUNT, zero if it is missing. until is UNTIL, nil if it is missing.
	count int64
	until *moment
	wkst  time.Weekday
	// months is a bit set, empty for all months.
	months                               uint16
	monthDays, yearDays, weeks, position ordinals
	// weekdays is a bit set of the weekdays without an ordinal. nth holds the ordinals of the others, by weekday. hasNth is true if there are
	// others.
	weekdays uint8
	nth      [7]ordinals
	hasNth   bool
	// hours, minutes and seconds are all in seconds. If some are missing, derive takes them from DTSTART.
	hours, minutes, seconds []int64
}

// ordinals is a set of ordinals, such as 1 for the first and -1 for the last. any is true if it is not empty.
type ordinals struct {
	first, last [6]uint64
	any         bool
}

func (o *ordinals) add(n int) {
	o.any = true
	set := &o.first
	if n < 0 {
		set, n = &o.last, -n
	}
	set[n/64] |= 1 << (n % 64)
}

// has returns whether the n-th element of a sequence is in the set, counted from the start or from the end. of is the number of elements.
func (o *ordinals) has(n, of int) bool {
	return bit(&o.first, n) || bit(&o.last, of-n+1)
}

func bit(set *[6]uint64, n int) bool { return n < 64*len(set) && set[n/64]&(1<<(n%64)) != 0 }

var weekdayNames = []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}

// parseRule parses the RRULE of an event that starts at start.
func (r *reader) parseRule(p *property, start moment) (*rule, error) {
	u := &rule{interval: 1, wkst: time.Monday}
	seen := map[string]bool{}
	text := strings.ToUpper(p.value)
	if clean := strings.TrimSuffix(strings.Join(strings.Fields(text), ""), ";"); clean != strings.TrimSpace(text) {
		r.warn(p, "has blanks or a semicolon at its end, which are ignored")
		text = clean
	}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ";") {
		key, value, _ := strings.Cut(part, "=")
		if seen[key] {
			return nil, p.errorf("has %s twice", quote(key))
		}
		seen[key] = true
		if key == "UNTIL" {
			until, err := r.parseMoment(&property{line: p.line, name: p.name}, value)
			if err != nil {
				return nil, p.errorf("has UNTIL=%s, which is neither a date nor a time", quote(value))
			}
			u.until = &until
			continue
		}
		if problem := u.set(key, value); problem != "" {
			return nil, p.errorf("has %s: %s", quote(part), problem)
		}
	}
	if problem := u.check(seen, start); problem != "" {
		return nil, p.errorf("%s", problem)
	}
	if u.until != nil {
		if *u.until = u.until.of(start); u.until.date {
			u.until.wall += day - 1
		}
	}
	u.derive(start)
	if len(u.hours)*len(u.minutes)*len(u.seconds) > 1440 {
		return nil, p.errorf("has more than 1440 times a day")
	}
	return u, nil
}

// set parses one part of the rule. It returns the problem with the part, empty if it is valid.
func (u *rule) set(key, value string) (problem string) {
	switch key {
	case "FREQ":
		f, ok := frequencies[value]
		if !ok {
			return "only DAILY, WEEKLY, MONTHLY and YEARLY are supported"
		}
		u.frequency = f
	case "INTERVAL":
		return number(value, &u.interval)
	case "COUNT":
		return number(value, &u.count)
	case "WKST":
		i := slices.Index(weekdayNames, value)
		if i < 0 {
			return "it is not a day of the week such as MO"
		}
		u.wkst = time.Weekday(i)
	case "BYDAY":
		return u.setDays(value)
	case "BYMONTH":
		return each(value, 1, 12, func(n int) { u.months |= 1 << n })
	case "BYMONTHDAY":
		return each(value, -31, 31, u.monthDays.add)
	case "BYYEARDAY":
		return each(value, -366, 366, u.yearDays.add)
	case "BYWEEKNO":
		return each(value, -53, 53, u.weeks.add)
	case "BYSETPOS":
		return each(value, -366, 366, u.position.add)
	case "BYHOUR":
		return each(value, 0, 23, func(n int) { u.hours = append(u.hours, int64(n)*hour) })
	case "BYMINUTE":
		return each(value, 0, 59, func(n int) { u.minutes = append(u.minutes, int64(n)*minute) })
	case "BYSECOND":
		// A leap second counts as the second before it.
		return each(value, 0, 60, func(n int) { u.seconds = append(u.seconds, min(int64(n), 59)) })
	default:
		return "unknown part"
	}
	return ""
}

// number parses a positive number.
func number(value string, to *int64) (problem string) {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || n == 0 {
		return "must be a number from 1 to 2147483647"
	}
	*to = int64(n)
	return ""
}

// each calls add for each number in a list. Numbers must be from low to high, but not zero if low is negative.
func each(value string, low, high int, add func(int)) (problem string) {
	for text := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high || n == 0 && low < 0 {
			problem = fmt.Sprintf("%s is not a number from %d to %d", quote(text), low, high)
			if n == 0 && low < 0 {
				problem += " without 0"
			}
			return problem
		}
		add(n)
	}
	return ""
}

// setDays parses a list of days of the week, each with or without an ordinal.
func (u *rule) setDays(value string) (problem string) {
	for text := range strings.SplitSeq(value, ",") {
		at := max(len(text)-2, 0)
		i := slices.Index(weekdayNames, text[at:])
		if i < 0 {
			return quote(text) + " is not a day of the week such as MO or -1FR"
		}
		if at == 0 {
			u.weekdays |= 1 << i
			continue
		}
		if problem := each(text[:at], -53, 53, u.nth[i].add); problem != "" {
			return problem
		}
		u.hasNth = true
	}
	return ""
}

// check returns why the parts of the rule are invalid together, empty if they are valid. seen has the names of the parts.
func (u *rule) check(seen map[string]bool, start moment) (problem string) {
	by := 0
	for key := range seen {
		if strings.HasPrefix(key, "BY") && key != "BYSETPOS" {
			by++
		}
	}
	f := u.frequency
	switch {
	case !seen["FREQ"]:
		return "has no FREQ"
	case seen["COUNT"] && seen["UNTIL"]:
		return "has both COUNT and UNTIL"
	case f == weekly && u.monthDays.any:
		return "has BYMONTHDAY, which is not allowed with FREQ=WEEKLY"
	case f != yearly && u.yearDays.any:
		return "has BYYEARDAY, which is only allowed with FREQ=YEARLY"
	case f != yearly && u.weeks.any:
		return "has BYWEEKNO, which is only allowed with FREQ=YEARLY"
	case u.hasNth && f < monthly:
		return "has BYDAY with a number, which is only allowed with FREQ=MONTHLY and FREQ=YEARLY"
	case u.hasNth && u.weeks.any:
		return "has BYDAY with a number, which is not allowed with BYWEEKNO"
	case u.weeks.any && (u.interval > 1 || u.position.any):
		// A week may be in two years, and RFC 5545 does not define in which of them it counts.
		return "has BYWEEKNO with INTERVAL or BYSETPOS, which is not supported"
	case u.position.any && by == 0:
		return "has BYSETPOS without another part that begins with BY"
	case start.date && u.hours != nil, start.date && u.minutes != nil, start.date && u.seconds != nil:
		return "has BYHOUR, BYMINUTE or BYSECOND, but the event starts with a date"
	}
	return ""
}

// derive sets the parts that the rule does not specify, based on the start of the event.
func (u *rule) derive(start moment) {
	t := time.Unix(start.wall, 0).UTC()
	byDay := u.weekdays != 0 || u.hasNth
	switch {
	case byDay, u.monthDays.any, u.yearDays.any:
	case u.frequency == weekly, u.weeks.any:
		u.weekdays = 1 << t.Weekday()
	case u.frequency == yearly && u.months == 0:
		u.months = 1 << t.Month()
		fallthrough
	case u.frequency >= monthly:
		u.monthDays.add(t.Day())
	}
	second := start.wall - midnight(start.wall)
	for _, part := range []struct {
		of   *[]int64
		from int64
	}{{&u.hours, second / hour * hour}, {&u.minutes, second % hour / minute * minute}, {&u.seconds, second % minute}} {
		if *part.of == nil {
			*part.of = []int64{part.from}
		}
		slices.Sort(*part.of)
		*part.of = slices.Compact(*part.of)
	}
}
