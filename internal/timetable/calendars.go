package timetable

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ical"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Bounds of a reference to a calendar, as in the CRD.
const (
	maxCategories = 32
	maxCategory   = 128
	maxKey        = 253
)

const (
	// calendarPast is how far back a calendar is read, because a request that is in force may have begun that long ago.
	calendarPast = v1alpha1.MaxWindow
	// MaxCalendarAge is the age at which an expanded calendar is expanded again.
	MaxCalendarAge = 24 * time.Hour
	// calendarAhead is how far ahead a calendar is read.
	calendarAhead = 2 * 366 * 24 * time.Hour
	// maxEvent bounds the name of an event, and maxBroken the error of a calendar, both in bytes.
	maxEvent  = 128
	maxBroken = 512
)

// CalendarFile identifies a file: an entry of a ConfigMap, and the time zone in which it is read. The file is parsed once for all
// CalendarKeys of a Gate.
type CalendarFile struct {
	// Namespace and Name identify the ConfigMap, and Key is the key of the entry.
	Namespace, Name, Key string
	// Zone applies to dates and times without a zone.
	Zone string
}

// CalendarKey identifies a calendar: a file, and the selection of its events.
type CalendarKey struct {
	CalendarFile
	Selection
}

// Selection selects the events of a file that make up a period.
type Selection struct {
	// Categories is a JSON list of categories, empty for all events.
	Categories string
	// Opens is true if the period opens the Gate. An event that may be superseded counts only in close periods.
	Opens bool
}

// Calendar is the result of reading the calendar of a CalendarKey.
type Calendar struct {
	// Period covers all selected events. It has no name.
	Period schedule.Period
	// Err is the reason why the calendar is broken, nil if it is not.
	Err error
	// NotCounted describes the events that do not count although that could leave a gap in a freeze, empty if there are none.
	NotCounted string
	// Warnings are about parts of the file that may be mistakes.
	Warnings []*ical.Error
	// Cost is the cost of the period and of parsing its file. A broken calendar has a cost, too.
	Cost CalendarCost
}

// CalendarCost is the cost of calendars: occurrences in memory, days that were evaluated for recurrence rules, and bytes of text.
type CalendarCost struct {
	Occurrences, Effort, Bytes int
}

// mostPerGate bounds the total cost of the calendars of a Gate. Calendars within this budget take at most 3 MiB of memory.
var mostPerGate = CalendarCost{Occurrences: ical.MaxOccurrences, Effort: 10_000_000, Bytes: ical.MaxText}

// maxConfigMaps bounds the number of ConfigMaps with the calendars of a Gate.
const maxConfigMaps = 16

// ErrOverBudget is the error of a calendar that exceeds the remaining budget of its Gate.
var ErrOverBudget = fmt.Errorf(msgOverBudget+
	msgOverBudgetRemedy, maxConfigMaps, mostPerGate.Occurrences, mostPerGate.Bytes)

// add returns the sum of two costs. It returns false if the sum exceeds the budget of a Gate.
func (c CalendarCost) add(other CalendarCost) (sum CalendarCost, ok bool) {
	sum = CalendarCost{c.Occurrences + other.Occurrences, c.Effort + other.Effort, c.Bytes + other.Bytes}
	return sum, sum.Occurrences <= mostPerGate.Occurrences && sum.Effort <= mostPerGate.Effort && sum.Bytes <= mostPerGate.Bytes
}

// Calendars holds the calendars of a Gate. A missing calendar counts as broken: its close periods cover all time, and its open periods
// cover nothing.
type Calendars map[CalendarKey]Calendar

// BrokenCalendar is a calendar of a Gate that cannot be read.
type BrokenCalendar struct {
	CalendarKey
	// Path is the field path of the calendar, and Period is the name of its period.
	Path, Period string
	// Cause is the error on one line. Causes lists the parts of the error.
	Cause  string
	Causes []string
}

// String returns the file and the cause.
func (b *BrokenCalendar) String() string {
	return fmt.Sprintf(msgCalendar, b.Namespace, b.Name, b.Key, b.Cause)
}

// Files holds the entries of a ConfigMap by key.
type Files struct {
	Data       map[string]string `json:"data"`
	BinaryData map[string][]byte `json:"binaryData"`
}

// text returns the entry with a key, and an error if there is none.
func (f *Files) text(key string) (string, error) {
	if text, ok := f.Data[key]; ok {
		return text, nil
	}
	if bytes, ok := f.BinaryData[key]; ok {
		return string(bytes), nil
	}
	return "", errors.New(msgNoEntry)
}

// CalendarsOf returns the calendars of a Gate, except those in ConfigMaps beyond maxConfigMaps.
func CalendarsOf(g *v1alpha1.Gate) []CalendarKey {
	within, _ := referredCalendars(g)
	return within
}

// referredCalendars returns the calendars of a Gate: those in the first maxConfigMaps ConfigMaps, and those in other ConfigMaps.
func referredCalendars(g *v1alpha1.Gate) (within, over []CalendarKey) {
	names := map[string]bool{}
	add := func(p *v1alpha1.Period, opens bool) {
		if p.Calendar == nil {
			return
		}
		key := calendarKey(g.Namespace, &g.Spec, p, opens)
		if len(names) < maxConfigMaps {
			names[key.Name] = true
		}
		keys := &within
		if !names[key.Name] {
			keys = &over
		}
		if !slices.Contains(*keys, key) {
			*keys = append(*keys, key)
		}
	}
	for i := range g.Spec.OpenPeriods {
		add(&g.Spec.OpenPeriods[i], true)
	}
	for i := range g.Spec.ClosePeriods {
		add(&g.Spec.ClosePeriods[i].Period, false)
	}
	return within, over
}

// calendarKey returns the key of the calendar of a period.
func calendarKey(namespace string, spec *v1alpha1.GateSpec, p *v1alpha1.Period, opens bool) CalendarKey {
	key := CalendarKey{Selection: Selection{Opens: opens}, CalendarFile: CalendarFile{Namespace: namespace, Name: p.Calendar.ConfigMapRef.Name, Key: p.Calendar.ConfigMapRef.Key, Zone: string(spec.TimeZone)}}
	if p.TimeZone != "" {
		key.Zone = string(p.TimeZone)
	}
	if len(p.Calendar.Categories) > 0 {
		list, _ := json.Marshal(p.Calendar.Categories) //nolint:errchkjson // strings can always be written
		key.Categories = string(list)
	}
	return key
}

// ReadCalendars reads the calendars of a Gate for decisions between two instants, but at least two years ahead. configMap returns a
// ConfigMap, or an error that breaks its calendars.
func ReadCalendars(g *v1alpha1.Gate, from, until time.Time, configMap func(namespace, name string) (*Files, error)) Calendars {
	return CollectCalendars(g, func(file CalendarFile, selections []Selection) []Calendar {
		files, err := configMap(file.Namespace, file.Name)
		if err != nil {
			return BrokenCalendars(selections, err)
		}
		return file.Read(files, selections, from, until)
	})
}

// CollectCalendars calls read for each calendar file of a Gate, in the order of the periods, and returns the calendars. Calendars over the
// budget of the Gate are broken, and files after them are not read.
func CollectCalendars(g *v1alpha1.Gate, read func(file CalendarFile, selections []Selection) []Calendar) Calendars {
	calendars, cost, ok := Calendars{}, CalendarCost{}, true
	keys, over := referredCalendars(g)
	for _, key := range over {
		calendars[key] = Calendar{Err: ErrOverBudget}
	}
	for i, key := range keys {
		if _, done := calendars[key]; done {
			continue
		}
		var selections []Selection
		for _, other := range keys[i:] {
			if other.CalendarFile == key.CalendarFile {
				selections = append(selections, other.Selection)
			}
		}
		found := BrokenCalendars(selections, ErrOverBudget)
		if ok {
			found = read(key.CalendarFile, selections)
		}
		for j, c := range found {
			if j > 0 { // the file is parsed once
				c.Cost.Effort, c.Cost.Bytes = 0, 0
			}
			sum, within := cost.add(c.Cost)
			if within {
				cost = sum
			} else if ok = false; c.Err == nil {
				c = Calendar{Err: ErrOverBudget, Cost: c.Cost}
			}
			calendars[CalendarKey{key.CalendarFile, selections[j]}] = c
		}
	}
	return calendars
}

// BrokenCalendars returns a broken calendar with the same error for each selection.
func BrokenCalendars(selections []Selection, err error) []Calendar {
	return slices.Repeat([]Calendar{{Err: err}}, len(selections))
}

// Read reads the selected calendars from a ConfigMap for decisions between two instants.
func (f CalendarFile) Read(files *Files, selections []Selection, from, until time.Time) []Calendar {
	text, err := files.text(f.Key)
	if err != nil {
		return BrokenCalendars(selections, err)
	}
	zone, err := schedule.LoadZone(f.Zone)
	if err != nil {
		return BrokenCalendars(selections, err)
	}
	ahead := from.Add(calendarAhead)
	if until.After(ahead) {
		ahead = until
	}
	parsed, err := ical.Parse(text, ical.Options{
		Zone: zone, From: from.Add(-calendarPast), Until: ahead, Name: func(summary string) string { return strings.Clone(format.OneLine(summary, maxEvent)) }, // does not keep the text in memory
	})
	if err != nil {
		return BrokenCalendars(selections, err)
	}
	var all []Calendar
	occurrences := 0
	for _, selection := range selections {
		c := Calendar{Err: ErrOverBudget}
		if occurrences <= mostPerGate.Occurrences {
			c = calendarOf(parsed, selection)
		}
		occurrences += c.Cost.Occurrences
		c.Cost.Effort, c.Cost.Bytes = parsed.Effort, len(text)
		all = append(all, c)
	}
	return all
}

// calendarOf returns the calendar of a selection.
func calendarOf(parsed *ical.Text, selection Selection) Calendar {
	var categories []string
	if selection.Categories != "" {
		if err := json.Unmarshal([]byte(selection.Categories), &categories); err != nil {
			return Calendar{Err: err}
		}
	}
	found, err := parsed.Select(categories, selection.Opens)
	if err != nil {
		return Calendar{Err: err}
	}
	return Calendar{Period: found.Period(""), NotCounted: notCounted(found), Warnings: found.Warnings, Cost: CalendarCost{Occurrences: len(found.Occurrences)}}
}

// calendar compiles a period with a calendar. If the calendar cannot be read, an open period covers nothing, and a close period covers all
// time.
func (c *compiler) calendar(path *field.Path, p *v1alpha1.Period, opens bool) schedule.Period {
	path = path.Child("calendar")
	if c.gate == nil {
		c.add(field.Forbidden(path, msgExceptionCalendar))
		return schedule.Period{}
	}
	c.calendarReference(path, p.Calendar)
	key := calendarKey(c.gate.Namespace, &c.gate.Spec, p, opens)
	found, known := c.calendars[key]
	if known && found.Err == nil {
		warn := func(text string) {
			c.ambiguous = append(c.ambiguous, Ambiguity{path.String(), fmt.Sprintf(msgCalendar, key.Namespace, key.Name, key.Key, text)})
		}
		if found.NotCounted != "" {
			warn(found.NotCounted)
		}
		for _, w := range found.Warnings {
			warn(w.Error())
		}
		return found.Period.Named(p.Name)
	}
	broken := BrokenCalendar{CalendarKey: key, Path: path.String(), Period: p.Name, Cause: msgNotRead}
	broken.Causes = []string{broken.Cause}
	if known {
		broken.Cause, broken.Causes = format.OneLine(found.Err.Error(), maxBroken), causes(found.Err)
	}
	c.broken = append(c.broken, broken)
	if opens {
		return schedule.Period{}
	}
	return schedule.Between(p.Name, time.Time{}, time.Time{})
}

// causes returns the errors of a file, each on one line.
func causes(err error) (all []string) {
	several := ical.Errors(nil)
	if !errors.As(err, &several) {
		return []string{format.OneLine(err.Error(), maxBroken)}
	}
	for _, one := range several {
		all = append(all, format.OneLine(one.Error(), maxBroken))
	}
	return all
}

// calendarReference validates a reference to a calendar as the schema of the CRD does.
func (c *compiler) calendarReference(path *field.Path, ref *v1alpha1.CalendarReference) {
	for _, f := range []struct{ name, value string }{{"name", ref.ConfigMapRef.Name}, {"key", ref.ConfigMapRef.Key}} {
		switch path := path.Child("configMapRef", f.name); {
		case f.value == "":
			c.add(field.Required(path, msgCalendarEntry))
		case len(f.value) > maxKey:
			c.add(field.TooLong(path, f.value, maxKey))
		}
	}
	path = path.Child("categories")
	switch n := len(ref.Categories); {
	case n > maxCategories:
		c.add(field.TooMany(path, n, maxCategories))
	case n == 0 && ref.Categories != nil:
		c.add(field.Invalid(path, "[]", "should have at least 1 items, leave it out for all events"))
	}
	for i, category := range ref.Categories {
		switch {
		case category == "":
			c.add(field.Required(path.Index(i), msgCategoryName))
		case len([]rune(category)) > maxCategory:
			c.add(field.TooLong(path.Index(i), category, maxCategory))
		case slices.Contains(ref.Categories[:i], category):
			c.add(field.Duplicate(path.Index(i), category))
		}
	}
}
