package ui

import (
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// view contains the settings of a page: the range and the time zone.
type view struct {
	Now time.Time
	// Zone is the zone of times, one of Zones.
	Zone  *time.Location
	Zones []choice
	// Days is the number of days of a timeline, and Range is the range.
	Days  int
	Range preview.Range
	// Root is the relative path to the overview.
	Root string
	// Command is the command that runs the plugin, such as kubectl gate.
	Command string
	// Bare is true if only names, states and times are shown.
	Bare bool
	// AnyZone is true if the browser may set the time zone.
	AnyZone bool
	// query contains the parameters of the URL.
	query url.Values
}

// Limits of the parameters.
const (
	maxDays = 92
	maxAway = 400 * 24 * time.Hour
)

// parameters are the supported parameters. Links omit all others.
var parameters = []string{"zone", "days", "from", "month", "text", "namespace", "state", "labels", "target"}

// Spans are the possible lengths of a timeline, in days.
var spans = []int{1, 7, 14, 31}

// view parses the parameters that all pages have. By default, times are in the viewer's zone. The parameter zone selects UTC, the zone of
// the Gate (of, nil if it has none), or any other zone if AnyZone is set.
func (h *handler) view(r *request, of *time.Location) (view, error) {
	v := view{Now: h.Clock.Now(), Zone: h.Zone, Days: 14, query: url.Values{}, Command: h.Command, Bare: r.viewer.Bare, AnyZone: h.AnyZone}
	v.Root = "./" + strings.Repeat("../", max(0, strings.Count(r.URL.EscapedPath(), "/")-1))
	asked := r.URL.Query()
	for _, name := range parameters {
		if value := asked.Get(name); value != "" {
			v.query.Set(name, value)
		}
	}
	var err error
	zone := v.query.Get("zone")
	switch {
	case zone == "UTC":
		v.Zone = time.UTC
	case zone == "gate" && of != nil:
		v.Zone = of
	case zone != "" && zone != "gate" && h.AnyZone:
		if v.Zone, err = tz.Load(zone); err != nil {
			v.Zone = time.UTC
			return v, badf("zone=%s: must be a time zone", zone)
		}
	}
	v.Now = v.Now.In(v.Zone)
	v.Zones = []choice{{"My zone", v.With("zone", ""), zone != "UTC" && v.Zone != of}, {"UTC", v.With("zone", "UTC"), zone == "UTC"}}
	if of != nil {
		v.Zones = append(v.Zones, choice{"Zone of the gate", v.With("zone", "gate"), v.Zone == of})
	}
	if days := v.query.Get("days"); days != "" {
		if v.Days, err = strconv.Atoi(days); err != nil || v.Days < 1 || v.Days > maxDays {
			return v, badf("days=%s: must be a number from 1 to %d", days, maxDays)
		}
	}
	from := v.Now
	if day := v.query.Get("from"); day != "" {
		if from, err = v.parse("from", time.DateOnly, day); err != nil {
			return v, err
		}
	}
	v.Range = preview.Range{From: midnight(from, 0), Until: midnight(from, v.Days)}
	return v, nil
}

// parse parses the day or the month in the parameter name. It rejects values that are more than maxAway from now. The result is noon in
// the zone of the view.
func (v view) parse(name, format, value string) (time.Time, error) {
	at, err := time.ParseInLocation(format, value, time.UTC)
	if err != nil {
		return at, badf("%s=%s: must have the form %s", name, value, v.Now.Format(format))
	}
	if at.Sub(v.Now).Abs() > maxAway {
		return at, badf("%s=%s: must be at most %d days from now", name, value, maxAway/(24*time.Hour))
	}
	return time.Date(at.Year(), at.Month(), at.Day(), 12, 0, 0, 0, v.Zone), nil
}

// midnight returns the start of a day in the zone of at. days is relative to the day of at. If the clocks skip midnight on
// that day, it returns 01:00.
func midnight(at time.Time, days int) time.Time {
	day := time.Date(at.Year(), at.Month(), at.Day()+days, 12, 0, 0, 0, at.Location())
	begin := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, at.Location())
	if begin.Day() != day.Day() {
		begin = begin.Add(time.Hour)
	}
	return begin
}

// With returns the URL of the same page with a different value of a parameter. An empty value removes the parameter.
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

// To returns the URL of another page with the same settings.
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

// ToGate returns the URL of the page of a Gate, given as namespace/name.
func (v view) ToGate(name string) string {
	namespace, short, _ := strings.Cut(name, "/")
	return v.To("gate", namespace, short)
}

// ToTimeline returns the URL of the timeline of a target on the page of a Gate, given as namespace/name.
func (v view) ToTimeline(gate string, t explain.Ref) string {
	address := v.ToGate(gate)
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + url.Values{"target": {t.Kind + "/" + t.Namespace + "/" + t.Name}}.Encode()
}

// Spans returns a link for each length of a timeline. The current length is selected.
func (v view) Spans() []choice {
	names := map[int]string{1: "Day", 7: "Week", 14: "Two weeks", 31: "Month"}
	var all []choice
	for _, days := range spans {
		all = append(all, choice{names[days], v.With("days", strconv.Itoa(days)), days == v.Days})
	}
	return all
}

// Earlier is the URL of the previous timeline.
func (v view) Earlier() string {
	return v.With("from", midnight(v.Range.From, -v.Days).Format(time.DateOnly))
}

// Later is the URL of the next timeline.
func (v view) Later() string { return v.With("from", v.Range.Until.Format(time.DateOnly)) }

// ZoneName is the name of the zone of times, such as Europe/Oslo (CET).
func (v view) ZoneName() string {
	short := v.Now.Format("MST")
	if name := v.Zone.String(); name != "Local" && name != short {
		return name + " (" + short + ")"
	}
	return short
}

// ZoneData is the version of the time zone data.
func (v view) ZoneData() string { return tz.Version() }

// Query returns a parameter.
func (v view) Query(name string) string { return v.query.Get(name) }

// choice is one of several links.
type choice struct {
	Name, Address string
	Current       bool
}

// Time formats an instant in the zone of the view, and how far away it is. It returns a dash if there is no instant.
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
	utc := t.UTC()
	return template.HTML(`<time datetime="` + utc.Format(time.RFC3339) + `" title="` + utc.Format("2006-01-02 15:04:05 UTC") + `">` + //nolint:gosec // nothing in it is from elsewhere
		t.In(v.Zone).Format("Mon 2006-01-02 15:04") + ` <small>` + distance(t.Sub(v.Now)) + `</small></time>`)
}

// distance formats a duration as the distance of an instant from now.
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
