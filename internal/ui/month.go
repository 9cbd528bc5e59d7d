package ui

import (
	"time"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// monthPage is the content of the printable page for a month.
type monthPage struct {
	*one
	// Name is the name of the month. Before and After are the URLs of the adjacent months.
	Name, Before, After string
	Weeks               [][]date
	Notes               []string
}

// date is a day in a month. The days of other months in the first and the last week are blank.
type date struct {
	Day     int
	Blank   bool
	Weekend bool
	Today   bool
	// Name is the full name of the day.
	Name string
	Bar  bar
	// Changes begin on the day, or last all day.
	Changes []change
}

// change is a state that begins on a day, or that lasts all day.
type change struct {
	// At is the time of day, empty if the state began at midnight or on an earlier day.
	At, State, Why string
}

const month = "2006-01"

func (h *handler) month(r *request) (c content, err error) {
	g, err := h.one(r)
	if err != nil {
		return c, err
	}
	at := r.view.Now
	if text := r.view.Query("month"); text != "" {
		if at, err = r.view.parse("month", month, text); err != nil {
			return c, err
		}
	}
	return content{make: func() (any, error) { return g.month(at, r) }}, nil
}

// month returns the content of the page of the month of an instant.
func (g *one) month(at time.Time, r *request) (any, error) {
	first := midnight(time.Date(at.Year(), at.Month(), 1, 12, 0, 0, 0, r.view.Zone), 0)
	next := midnight(first.AddDate(0, 1, 0), 0)
	t, warnings, err := g.timeline(r.Context(), preview.Range{From: first, Until: next})
	if err != nil {
		return nil, err
	}
	page := monthPage{one: g, Name: first.Format("January 2006"), Notes: append(warnings, g.known.Notes...)}
	page.Before, page.After = r.view.With("month", midnight(first, -1).Format(month)), r.view.With("month", next.Format(month))
	monday := midnight(first, -(int(first.Weekday())+6)%7)
	for at := monday; at.Before(next); {
		var week []date
		for range 7 {
			d := date{Day: at.Day(), Blank: at.Month() != first.Month(), Weekend: isWeekend(at)}
			if !d.Blank {
				d.fill(t, preview.Range{From: at, Until: midnight(at, 1)}, r.view)
			}
			week, at = append(week, d), midnight(at, 1)
		}
		page.Weeks = append(page.Weeks, week)
	}
	return page, nil
}

// fill adds the intervals of a timeline on a day.
func (d *date) fill(t preview.Timeline, day preview.Range, v view) {
	d.Name, d.Bar.Now = day.From.Format("Monday 2 January"), nowIn(v.Now, day)
	d.Today, d.Bar.Title = d.Bar.Now >= 0, t.Gate+" on "+d.Name
	for _, i := range t.Intervals {
		if !i.Until.After(day.From) || !i.From.Time.Before(day.Until) {
			continue
		}
		p := partOf(i, day, v.Zone)
		p.Label = ""
		d.Bar.Parts = append(d.Bar.Parts, p)
		c := change{State: i.State, Why: label(i.Cause)}
		if i.From.After(day.From) {
			c.At = i.From.In(v.Zone).Format("15:04")
		}
		d.Changes = append(d.Changes, c)
	}
}
