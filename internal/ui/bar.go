package ui

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// bar is the drawing of a timeline. Positions are in percent of its width, so that it fits any screen.
type bar struct {
	// Title is the text for screen readers.
	Title string
	Parts []part
	// Now is the position of the current time, negative if it is outside the drawing.
	Now float64
	// Grid is true if the bar refers to the days and the current time drawn by the axis, so that the bar itself is the same all day.
	Grid bool
}

// axis is the drawing above the bars, with the days and the current time.
type axis struct {
	Days []day
	Now  float64
}

// part is an interval in which a Gate keeps a state.
type part struct {
	X, Width float64
	// Kind is the pattern of the part, which distinguishes states and reasons without colors.
	Kind string
	// Label is drawn if it fits, and Title is the tooltip.
	Label, Title string
}

const (
	// letter is the maximum width of a letter, in pixels. From firstWide on, letters (of East Asian scripts) are twice as wide.
	letter, firstWide = 7, '\u1100'
	// narrow is the minimum width of a drawing with labels, in pixels. The style hides labels in narrower drawings.
	narrow = 640
	// maxLabel bounds the length of a label or a title, in bytes.
	maxLabel = 120
)

// plate is the width of the background of a label, in pixels.
func (p part) plate() int {
	letters := 0
	for _, r := range p.Label {
		letters++
		if r >= firstWide {
			letters++
		}
	}
	return letter*letters + 8
}

// roomy returns whether the part has a label and is wide enough to show it.
func (p part) roomy() bool { return p.Label != "" && p.Width*narrow/100 >= float64(p.plate()+6) }

// day is a day in a timeline.
type day struct {
	X, Width float64
	Weekend  bool
	// Name is drawn above the day, empty if it does not fit. Also is true if Name does not fit on a small screen.
	Name string
	Also bool
}

// place returns the position of an instant in a range, in percent.
func place(r preview.Range, at time.Time) float64 {
	return 100 * float64(at.Sub(r.From)) / float64(r.Until.Sub(r.From))
}

// axisOf returns the drawing above the bars.
func axisOf(v view) axis {
	a := axis{Now: nowIn(v.Now, v.Range)}
	for at := v.Range.From; at.Before(v.Range.Until); {
		next := midnight(at, 1)
		d := day{X: place(v.Range, at), Weekend: isWeekend(at), Name: nameOf(at, v.Days), Also: at.After(v.Range.From) && at.Weekday() != time.Monday}
		d.Width = place(v.Range, next) - d.X
		a.Days = append(a.Days, d)
		at = next
	}
	return a
}

func isWeekend(at time.Time) bool {
	return at.Weekday() == time.Saturday || at.Weekday() == time.Sunday
}

// nameOf returns the name of a day on the axis. Names are shorter in longer timelines. In timelines of more than 14 days, only Mondays
// have a name.
func nameOf(at time.Time, days int) string {
	switch {
	case days <= 7:
		return at.Format("Mon 2 Jan")
	case days <= 14:
		return at.Format("Mon 2")
	case at.Weekday() == time.Monday:
		return at.Format("2 Jan")
	}
	return ""
}

func nowIn(now time.Time, r preview.Range) float64 {
	if now.Before(r.From) || !now.Before(r.Until) {
		return -1
	}
	return place(r, now)
}

// barOf returns the drawing of a timeline.
func barOf(t preview.Timeline, v view) bar {
	b := bar{Now: -1, Grid: true, Title: fmt.Sprintf("%s from %s until %s", t.Gate, v.Range.From.Format("2 January"), v.Range.Until.Format("2 January"))}
	for _, i := range t.Intervals {
		b.Parts = append(b.Parts, partOf(i, v.Range, v.Zone))
	}
	return b
}

// partOf returns the drawing of an interval, clipped to a range.
func partOf(i preview.Interval, r preview.Range, zone *time.Location) part {
	from, until := place(r, i.From.Time), place(r, i.Until.Time)
	p := part{X: max(0, from), Kind: kindOf(i), Label: cut(label(i.Cause))}
	p.Width = min(100, until) - p.X
	p.Title = cut(strings.TrimSuffix(i.State+" "+span(i.From.In(zone), i.Until.In(zone))+", "+i.ShortReason(), ", "))
	return p
}

// span formats an interval. If it begins and ends on the same day, the date is printed once.
func span(from, until time.Time) string {
	const minute = "Mon 2 Jan 15:04"
	text := append(from.AppendFormat(make([]byte, 0, 48), minute), " – "...)
	y1, m1, d1 := from.Date()
	if y2, m2, d2 := until.Date(); y1 == y2 && m1 == m2 && d1 == d2 {
		return string(until.AppendFormat(text, "15:04"))
	}
	return string(until.AppendFormat(text, minute))
}

// cut truncates a text to maxLabel bytes. It replaces characters that are not printable, such as characters that change the writing
// direction.
func cut(text string) string {
	text = format.Printable(text)
	if len(text) <= maxLabel {
		return text
	}
	return strings.ToValidUTF8(text[:maxLabel], "") + "…"
}

// label returns the label of a part.
func label(c preview.Cause) string {
	switch c.Reason {
	case "":
		return c.State
	case v1alpha1.DefaultReason:
		return c.State + " by default"
	}
	return c.ShortReason()
}

// kindOf returns the pattern of an interval.
func kindOf(i preview.Interval) string {
	state := "closed"
	if i.State == string(v1alpha1.StateOpened) {
		state = "opened"
	}
	switch i.Reason {
	case v1alpha1.OpenRequestedReason, v1alpha1.CloseRequestedReason:
		return state + "-request"
	case v1alpha1.ExceptionAppliesReason:
		return state + "-exception"
	case v1alpha1.ClosePeriodReason:
		return state + "-period"
	case v1alpha1.InvalidSpecReason, v1alpha1.TimeUnknownReason, v1alpha1.DependencyNotReadyReason:
		return state + "-fault"
	}
	return state
}

// SVG writes a bar. It uses no template, because a page has tens of thousands of parts.
func (b bar) SVG() template.HTML {
	w := make([]byte, 0, 256*(len(b.Parts)+1))
	w = append(w, `<svg class="bar" role="img" aria-label="`...)
	w = append(append(w, template.HTMLEscapeString(b.Title)...), `" width="100%" height="30">`...)
	if b.Grid {
		w = append(w, `<use href="#grid"/>`...)
	}
	for _, p := range b.Parts {
		w = append(append(w, `<rect class="part" fill="url(#`...), p.Kind...)
		w = percent(percent(append(w, `)"`...), "x", p.X), "width", p.Width)
		w = append(append(append(w, `><title>`...), template.HTMLEscapeString(p.Title)...), `</title></rect>`...)
		if p.roomy() {
			w = percent(append(w, `<svg class="label"`...), "x", p.X)
			w = strconv.AppendInt(append(w, `><rect class="plate" x="3" y="7" rx="3" height="16" width="`...), int64(p.plate()), 10)
			w = append(append(append(w, `"/><text x="7" y="19">`...), template.HTMLEscapeString(p.Label)...), `</text></svg>`...)
		}
	}
	if b.Grid {
		w = append(w, `<use href="#now"/>`...)
	}
	if b.Now >= 0 {
		w = append(percent(append(w, `<rect class="now" width="2" y="0" height="100%"`...), "x", b.Now), `/>`...)
	}
	return template.HTML(append(w, `</svg>`...)) //nolint:gosec // each text is escaped above
}

// percent appends an attribute to w, with a value in percent.
func percent(w []byte, name string, value float64) []byte {
	w = append(append(append(w, ' '), name...), `="`...)
	return append(strconv.AppendFloat(w, value, 'f', 2, 64), `%"`...)
}
