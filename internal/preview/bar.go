package preview

import (
	"strings"
	"time"
)

// Characters of a bar. Each character shows the state of a Gate in an interval.
const (
	BarOpened = '█'
	BarClosed = '░'
	BarBoth   = '▒'
)

// Bar draws a timeline with columns characters. Each character represents an equal part of the range.
func (t *Timeline) Bar(r Range, columns int) string {
	var bar strings.Builder
	next := 0
	for column := range columns {
		from, until := r.at(column, columns), r.at(column+1, columns)
		opened, closed := false, false
		for ; next < len(t.Intervals); next++ {
			i := t.Intervals[next]
			if i.From.Time.Before(until) && i.Until.After(from) {
				opened, closed = opened || i.State == "opened", closed || i.State != "opened"
			}
			if i.Until.After(until) {
				break // the interval continues in the next column
			}
		}
		switch {
		case opened && closed:
			bar.WriteRune(BarBoth)
		case opened:
			bar.WriteRune(BarOpened)
		case closed:
			bar.WriteRune(BarClosed)
		default:
			bar.WriteRune(' ')
		}
	}
	return bar.String()
}

// at returns the instant at which a column starts.
func (r Range) at(column, columns int) time.Time {
	seconds := r.Until.Unix() - r.From.Unix()
	return r.From.Add(time.Duration(seconds*int64(column)/int64(columns)) * time.Second)
}

// share returns the fraction of a range before an instant, from 0 to 1. It does not use time.Duration, which cannot represent all ranges.
func (r Range) share(at time.Time) float64 {
	return float64(at.Unix()-r.From.Unix()) / float64(r.Until.Unix()-r.From.Unix())
}

// days returns the number of days of a range.
func (r Range) days() float64 { return float64(r.Until.Unix()-r.From.Unix()) / (24 * 60 * 60) }

// Axis returns the axis to print above a bar. It marks midnights in the zone of the range with |, followed by the date if it fits. If
// days are narrow, it skips some of them.
func (r Range) Axis(columns int) string {
	axis := []rune(strings.Repeat(" ", columns))
	free := 0
	for _, day := range midnights(r, columns) {
		column := int(r.share(day) * float64(columns))
		if column < free || column >= columns {
			continue
		}
		label := r.label(day, column, columns)
		if label == "" && r.perDay(columns) < tightDay {
			continue
		}
		copy(axis[column:], []rune("|"+label))
		free = column + 2 + len(label)
	}
	return strings.TrimRight(string(axis), " ")
}

// tightDay is the number of columns that a date needs. If a day has fewer columns, only some days are shown on the axis.
const tightDay = 7

// perDay returns the number of columns per day.
func (r Range) perDay(columns int) float64 { return float64(columns) / r.days() }

// label returns the date for a day that begins in a column, empty if it does not fit.
func (r Range) label(day time.Time, column, columns int) string {
	for _, label := range []string{day.Format("Mon 01-02"), day.Format("01-02")} {
		fits := len(label) <= tightDay-2 || r.perDay(columns) >= float64(len(label)+2)
		if fits && column+1+len(label) <= columns {
			return label
		}
	}
	return ""
}

// midnights returns when days start in a range, in the zone of the range. If there are more than most, it skips days evenly.
func midnights(r Range, most int) (days []time.Time) {
	year, month, day := r.From.Date()
	step := 1 + int(r.days())/max(1, most)
	for n := 0; ; n += step {
		at := time.Date(year, month, day+n, 0, 0, 0, 0, r.From.Location())
		if !at.Before(r.Until) {
			return days
		}
		if !at.Before(r.From) {
			days = append(days, at)
		}
	}
}
