package ui

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// view is how somebody looks at a page: when, in which zone, and how far.
type view struct {
	Now  time.Time
	Zone *time.Location
	// UTC is whether times are in UTC and not in the zone of the viewer.
	UTC bool
	// Days is how many a timeline has, and Range is which.
	Days  int
	Range preview.Range
	// Root is the relative path to the first page.
	Root string
	// query is what the address asks for.
	query url.Values
	path  string
	// Command is how the plug-in is called.
	Command string
}

// Spans are the lengths that a timeline can have, in days.
var spans = []int{1, 7, 14, 31}

// view reads the part of an address that all pages have.
func (h *handler) view(r *http.Request) (view, error) {
	query := r.URL.Query()
	v := view{Now: h.Clock.Now(), Zone: h.Zone, Days: 14, query: query, path: r.URL.Path, Command: h.Command}
	v.Root = "./" + strings.Repeat("../", strings.Count(r.URL.Path, "/")-1)
	if v.UTC = query.Get("zone") == "UTC"; v.UTC {
		v.Zone = time.UTC
	}
	v.Now = v.Now.In(v.Zone)
	var err error
	if days := query.Get("days"); days != "" {
		if v.Days, err = strconv.Atoi(days); err != nil || v.Days < 1 || v.Days > 92 {
			return v, badf("days=%s: it must be a number from 1 to 92", days)
		}
	}
	from := time.Date(v.Now.Year(), v.Now.Month(), v.Now.Day(), 0, 0, 0, 0, v.Zone)
	if day := query.Get("from"); day != "" {
		if from, err = time.ParseInLocation(time.DateOnly, day, v.Zone); err != nil {
			return v, badf("from=%s: it must be a day such as 2026-12-24", day)
		}
		if away := from.Sub(v.Now).Abs(); away > 400*24*time.Hour {
			return v, badf("from=%s: it must be at most 400 days away", day)
		}
	}
	v.Range = preview.Range{From: from, Until: from.AddDate(0, 0, v.Days)}
	return v, nil
}

// With returns the address of the same page with another value of a parameter, without it if that is empty.
func (v view) With(name, value string) string {
	query := url.Values{}
	for key, values := range v.query {
		query[key] = values
	}
	query.Del(name)
	if value != "" {
		query.Set(name, value)
	}
	return "?" + query.Encode()
}

// To returns the address of another page, seen in the same way.
func (v view) To(path ...string) string {
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	address := v.Root + strings.Join(path, "/")
	query := url.Values{}
	for _, name := range []string{"zone", "days"} {
		if value := v.query.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// Spans are the lengths that a timeline can have, with whether each is the present one.
func (v view) Spans() []choice {
	names := map[int]string{1: "Day", 7: "Week", 14: "Two weeks", 31: "Month"}
	var all []choice
	for _, days := range spans {
		all = append(all, choice{names[days], v.With("days", strconv.Itoa(days)), days == v.Days})
	}
	return all
}

// Earlier and Later are the addresses of the timeline before and after.
func (v view) Earlier() string { return v.With("from", v.Range.From.AddDate(0, 0, -v.Days).Format(time.DateOnly)) }

// Later is the address of the timeline after the present one.
func (v view) Later() string { return v.With("from", v.Range.Until.Format(time.DateOnly)) }

// ZoneName is the name of the zone in which times are.
func (v view) ZoneName() string { return v.Now.Format("MST") }

// Query returns a parameter.
func (v view) Query(name string) string { return v.query.Get(name) }

// choice is one of several links.
type choice struct {
	Name, Address string
	Current       bool
}

// Time writes an instant in the zone of the view, with how far away it is.
func (v view) Time(at any) template.HTML {
	var t time.Time
	switch at := at.(type) {
	case time.Time:
		t = at
	case metav1.Time:
		t = at.Time
	case *metav1.Time:
		if at != nil {
			t = at.Time
		}
	case metav1.MicroTime:
		t = at.Time
	case *metav1.MicroTime:
		if at != nil {
			t = at.Time
		}
	}
	if t.IsZero() {
		return "–"
	}
	t = t.In(v.Zone)
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `" title="` + template.HTMLEscapeString(t.UTC().Format("2006-01-02 15:04:05 UTC")) + `">` + //nolint:gosec // nothing in it is from elsewhere
		template.HTMLEscapeString(t.Format("Mon 2006-01-02 15:04")) + ` <small>` + distance(t.Sub(v.Now)) + `</small></time>`)
}

// distance says how far away an instant is.
func distance(d time.Duration) string {
	text, abs := "", d.Abs()
	switch {
	case abs < time.Minute:
		return "now"
	case abs < time.Hour:
		text = strconv.Itoa(int(abs/time.Minute)) + " min"
	case abs < 48*time.Hour:
		text = strconv.Itoa(int(abs/time.Hour)) + " h"
	default:
		text = strconv.Itoa(int(abs/(24*time.Hour))) + " d"
	}
	if d < 0 {
		return text + " ago"
	}
	return "in " + text
}
