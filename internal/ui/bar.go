package ui

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// bar is a timeline as a drawing. All places are in percent of its width, so that it fits any screen.
type bar struct {
	// Title is what a screen reader says.
	Title string
	Parts []part
	Days  []day
	// Now is where the present is, negative if it is not in the drawing.
	Now float64
}

// part is a stretch of time in which a Gate keeps a state.
type part struct {
	X, Width float64
	// Kind is the class of the drawing: its pattern tells states and reasons apart without colors.
	Kind string
	// Label is on it where there is room, Title is what it says when somebody points at it.
	Label, Title string
}

// Pattern is the name of the pattern of a part.
func (p part) Pattern() string { return strings.ReplaceAll(p.Kind, " ", "-") }

// letter is how wide a letter is at most, in pixels, and narrow how wide a drawing is at least for a label to fit.
const letter, narrow = 7, 640

// Plate is how wide the ground of a label is, in pixels.
func (p part) Plate() int { return letter*utf8.RuneCountInString(p.Label) + 8 }

// Roomy returns whether there is room for the label.
func (p part) Roomy() bool { return p.Width*narrow/100 >= float64(p.Plate()+6) }

// day is one in a timeline.
type day struct {
	X, Width float64
	Weekend  bool
	// Name is above it, empty where there is no room.
	Name string
}

// place returns where an instant is in a range.
func place(r preview.Range, at time.Time) float64 {
	all := r.Until.Sub(r.From)
	return 100 * float64(at.Sub(r.From)) / float64(all)
}

// days returns those of a range.
func days(v view) (all []day) {
	for at := v.Range.From; at.Before(v.Range.Until); {
		next := at.AddDate(0, 0, 1)
		d := day{X: place(v.Range, at), Weekend: at.Weekday() == time.Saturday || at.Weekday() == time.Sunday}
		d.Width = place(v.Range, next) - d.X
		d.Name = nameOf(at, v.Days)
		all = append(all, d)
		at = next
	}
	return all
}

// nameOf returns the name of a day where there is room in a timeline of some days.
func nameOf(at time.Time, days int) string {
	switch {
	case days <= 7:
		return at.Format("Mon 2 Jan")
	case days <= 14:
		return at.Format("Mon 2")
	case at.Weekday() == time.Monday:
		return at.Format("Mon 2 Jan")
	}
	return ""
}

// axis returns the drawing above the bars.
func axis(v view) bar { return bar{Days: days(v), Now: nowIn(v)} }

func nowIn(v view) float64 {
	if v.Now.Before(v.Range.From) || !v.Now.Before(v.Range.Until) {
		return -1
	}
	return place(v.Range, v.Now)
}

// barOf returns the drawing of a timeline.
func barOf(t preview.Timeline, v view) bar {
	b := bar{Days: days(v), Now: nowIn(v), Title: fmt.Sprintf("%s from %s until %s", t.Gate, v.Range.From.Format("2 January"), v.Range.Until.Format("2 January"))}
	for _, i := range t.Intervals {
		p := part{X: place(v.Range, i.From.Time), Kind: kindOf(i), Label: label(i)}
		p.Width = place(v.Range, i.Until.Time) - p.X
		p.Title = fmt.Sprintf("%s from %s until %s: %s", i.State, i.From.In(v.Zone).Format("Mon 2 Jan 15:04"), i.Until.In(v.Zone).Format("Mon 2 Jan 15:04"), i.Words())
		b.Parts = append(b.Parts, p)
	}
	return b
}

// label says what a stretch is.
func label(i preview.Interval) string {
	if i.Reason == v1alpha1.DefaultReason {
		return i.State + " by default"
	}
	return i.Words()
}

// kindOf returns how a stretch is drawn.
func kindOf(i preview.Interval) string {
	state := "closed"
	if i.State == string(v1alpha1.StateOpened) {
		state = "opened"
	}
	switch i.Reason {
	case v1alpha1.OpenRequestedReason, v1alpha1.CloseRequestedReason:
		return state + " request"
	case v1alpha1.ExceptionAppliesReason:
		return state + " exception"
	case v1alpha1.ClosePeriodReason:
		return state + " period"
	case v1alpha1.InvalidSpecReason, v1alpha1.TimeUnknownReason, v1alpha1.DependencyNotReadyReason, v1alpha1.TooManyTargetsReason:
		return state + " fault"
	}
	return state
}
