package calendarfeed

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ical"
)

const holidays = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nDTSTART:20261125T110000Z\nDURATION:PT1H\nSUMMARY:Day of Rest\nEND:VEVENT\nEND:VCALENDAR\n"

func onlyClosed(c *v1alpha1.CalendarFeed) { c.Spec.State = v1alpha1.StateClosed }

func onlyOpened(c *v1alpha1.CalendarFeed) { c.Spec.State = v1alpha1.StateOpened }

// serving returns a replica with a calendar of all Gates, and its path.
func serving(t testing.TB, change func(*v1alpha1.CalendarFeed), all ...client.Object) (*replica, string) {
	t.Helper()
	c := calendarOf("production")
	if change != nil {
		change(c)
	}
	r := newReplica(t, newObjects(t, append(all, c, secretOf("production", "token", "t"))...))
	return r, r.load("production")
}

func TestETagIsEqualOnAllReplicas(t *testing.T) {
	r, path := serving(t, nil, gateOf("web"), gateOf("shop", withHolidays))
	r.watches.set("apps/days", 1, holidays)
	other := newReplica(t, r.objects)
	other.watches.set("apps/days", 1, holidays)
	other.load("production")
	tag := r.get(path).Header().Get("ETag")
	for hour := 10; hour < 24; hour += 3 {
		other.clock.SetTime(testNow.Truncate(24 * time.Hour).Add(time.Duration(hour) * time.Hour))
		if got := other.get(path).Header().Get("ETag"); got != tag {
			t.Errorf("at %d:00 it is %s, and %s on the other replica", hour, got, tag)
		}
	}
	other.clock.SetTime(testNow.AddDate(0, 0, 1))
	if got := other.get(path).Header().Get("ETag"); got == tag {
		t.Error("on the next day it is the same")
	}
}

func TestEventKeepsUIDAndStartEachDay(t *testing.T) {
	shut := func(g *v1alpha1.Gate) { g.Spec.OpenPeriods = nil }
	freeze := func(g *v1alpha1.Gate) {
		from, until := metav1.NewTime(testNow.AddDate(0, 0, 2)), metav1.NewTime(testNow.AddDate(0, 0, 20))
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}}
	}
	r, path := serving(t, nil, gateOf("web"), gateOf("shut", shut), gateOf("shop", freeze))
	begins := map[string]string{}
	for day := range 30 {
		r.clock.SetTime(testNow.AddDate(0, 0, day))
		for _, e := range r.shows(path) {
			start := e.GetProperty(ics.ComponentPropertyDtStart).Value
			if before, seen := begins[e.Id()]; seen && before != start {
				t.Fatalf("on day %d, %s begins at %s, and before at %s", day, e.Id(), start, before)
			}
			begins[e.Id()] = start
		}
	}
	if len(begins) < 70 || begins["closed-from-20261024T093000Z.shut.gate.apps"] != "20261024T093000Z" {
		t.Errorf("%d events: %v", len(begins), begins)
	}
}

func TestLastModifiedIncreasesOnlyWithChanges(t *testing.T) {
	r, path := serving(t, nil, gateOf("web"))
	modified := func() time.Time {
		t.Helper()
		r.later()
		at, err := http.ParseTime(r.get(path).Header().Get("Last-Modified"))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := modified()
	g := gateOf("web")
	r.change(g, func() { g.Status.ObservedGeneration = 7 })
	if again := modified(); !again.Equal(first) {
		t.Errorf("a report on the gate changes it from %s to %s", first, again)
	}
	last := first
	for _, end := range []string{"13:00", "14:00", "12:00"} {
		r.change(g, func() { g.Spec.OpenPeriods[0].End = &end })
		next := modified()
		if !next.After(last) {
			t.Errorf("with %s it is of %s, before it was of %s", end, next, last)
		}
		if got := r.get(path, "If-Modified-Since", last.Format(http.TimeFormat)); got.Code != http.StatusOK {
			t.Errorf("who has the one before gets %d", got.Code)
		}
		last = next
	}
	r.clock.SetTime(testNow.Add(-time.Hour))
	r.change(g, func() { end := "15:00"; g.Spec.OpenPeriods[0].End = &end })
	if next := modified(); !next.After(last) {
		t.Errorf("the clock is set back, and so is the time: %s", next)
	}
	obj := calendarOf("production")
	r.change(obj, func() { obj.Spec.Days, obj.Generation = 3, 2 })
	r.load("production")
	if got := r.get(path); got.Header().Get("Last-Modified") <= last.Format(http.TimeFormat) || len(r.shows(path)) != 7 {
		t.Errorf("a change of the calendar: %s, %d events", got.Header().Get("Last-Modified"), len(r.shows(path)))
	}
}

func TestStampOfEventsIsLastChangeOfObjects(t *testing.T) {
	edited, reported := metav1.NewTime(testNow.Add(-time.Hour)), metav1.NewTime(testNow)
	g := gateOf("web", func(g *v1alpha1.Gate) {
		g.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Time: &edited}, {Manager: "gating-controller", Subresource: "status", Time: &reported}, {Manager: "old"},
		}
	})
	c, day := &contents{gates: []*v1alpha1.Gate{g}}, testNow.Truncate(24*time.Hour)
	if got := c.changed(day); !got.Equal(edited.Time) {
		t.Errorf("it is %s", got)
	}
	if got := c.changed(testNow); !got.Equal(testNow) {
		t.Errorf("on a later day it is %s", got)
	}
}

func TestFeedHasExceptionsAndRequests(t *testing.T) {
	start, end := "20:00", "21:00"
	evening := &v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Name: "evening", Namespace: "apps", CreationTimestamp: metav1.NewTime(testNow)},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "web"}, TimeZone: "UTC",
			ValidFrom: metav1.NewTime(testNow), ValidUntil: metav1.NewTime(testNow.AddDate(0, 0, 1)),
			OpenPeriods: []v1alpha1.Period{{Name: "late", Start: &start, End: &end}},
		},
	}
	other := evening.DeepCopy()
	other.Name, other.Spec.GateRef.Name = "other", "elsewhere"
	at := metav1.NewMicroTime(testNow.AddDate(0, 0, 2).Truncate(24 * time.Hour).Add(15 * time.Hour))
	planned := func(g *v1alpha1.Gate) {
		g.Spec.Window = &v1alpha1.Duration{Duration: time.Hour}
		g.Status.Requests = []v1alpha1.AcceptedRequest{{State: v1alpha1.RequestInForce, Action: v1alpha1.RequestOpen, Source: v1alpha1.SourceAnnotation, RequestedAt: at, AcceptedAt: metav1.NewMicroTime(testNow)}}
	}
	r, path := serving(t, func(c *v1alpha1.CalendarFeed) { c.Spec.State, c.Spec.Days = v1alpha1.StateOpened, 3 }, gateOf("web", planned), evening, other)
	var got []string
	for _, e := range r.shows(path) {
		got = append(got, e.GetProperty(ics.ComponentPropertyDtStart).Value+" "+e.GetProperty(ics.ComponentPropertySummary).Value)
	}
	want := []string{
		"20261124T100000Z web: opened (open period day)", "20261124T200000Z web: opened (exception evening)", "20261125T100000Z web: opened (open period day)",
		"20261126T100000Z web: opened (open period day)", "20261126T150000Z web: opened (open request)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r.change(evening, func() { evening.Spec.ValidUntil = metav1.NewTime(testNow.Add(time.Hour)) })
	r.later()
	if n := len(r.shows(path)); n != 4 {
		t.Errorf("%d events when the exception is over earlier", n)
	}
}

func TestFeedOfCalendarFollowsItsConfigMap(t *testing.T) {
	r, path := serving(t, onlyOpened, gateOf("shop", withHolidays))
	r.watches.set("apps/days", 1, holidays)
	split := func() bool {
		r.later()
		return slices.ContainsFunc(r.shows(path), func(e *ics.VEvent) bool { return e.GetProperty(ics.ComponentPropertyDtEnd).Value == "20261125T110000Z" })
	}
	if !split() {
		t.Error("the holiday does not count")
	}
	r.watches.set("apps/days", 2, strings.Replace(holidays, "20261125", "20261126", 1))
	if split() {
		t.Error("the change does not count")
	}
	for name, tc := range map[string]struct {
		break_ func()
		want   string
	}{
		"it does not exist":    {func() { r.watches.set("apps/days", 3, "") }, "ConfigMap apps/days, key no.ics: does not exist"},
		"it is not a calendar": {func() { r.watches.set("apps/days", 4, "hello") }, "ConfigMap apps/days, key no.ics: line 1"},
		"reading is forbidden": {func() { r.watches.failed = apierrors.NewForbidden(schema.GroupResource{}, "days", nil) }, "the controller may not read it: install config/calendars, or grant the controller a Role"},
	} {
		r.watches.failed = nil
		tc.break_()
		r.later()
		events := r.shows(path)
		if len(events) != 1 || summaries(events)[0] != "shop: closed (close period holidays)" {
			t.Fatalf("%s: %q", name, summaries(events))
		}
		if why := events[0].GetProperty(ics.ComponentPropertyDescription).Value; !strings.Contains(why, tc.want) {
			t.Errorf("%s: %q", name, why)
		}
	}
	r.Table.Forget(client.ObjectKey{Namespace: "apps", Name: "production"})
	if r.watches.open != 0 || r.watches.opened != 1 {
		t.Errorf("%d watches of %d are left", r.watches.open, r.watches.opened)
	}
}

func TestUnreadConfigMapIsNotServed(t *testing.T) {
	r, path := serving(t, nil, gateOf("shop", withHolidays))
	r.watches.failed = errors.New("away")
	if got := r.get(path); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("%d", got.Code)
	}
	go func() {
		time.Sleep(5 * readInterval)
		r.watches.set("apps/days", 1, holidays)
	}()
	if n := len(r.shows(path)); n != 15 {
		t.Errorf("%d events once it is read", n)
	}
}

func TestUndecidableOrMissingGatesAreShown(t *testing.T) {
	nowhere := func(g *v1alpha1.Gate) { g.Spec.TimeZone = "Nowhere" }
	named := func(c *v1alpha1.CalendarFeed) {
		c.Spec.Selector, c.Spec.GateRefs = nil, []v1alpha1.GateReference{{Name: "gone"}, {Name: "bad"}, {Name: "audit"}}
		onlyOpened(c)
	}
	audits := func(g *v1alpha1.Gate) { g.Spec.Mode, g.Spec.OpenPeriods = v1alpha1.ModeAudit, nil }
	r, path := serving(t, named, gateOf("bad", nowhere), gateOf("web"), gateOf("audit", audits))
	got := summaries(r.shows(path))
	if want := []string{"bad: closed (invalid spec)", "gone: unknown (gate not found)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	obj := calendarOf("production")
	r.change(obj, func() { obj.Spec.State, obj.Generation = "", 2 })
	r.load("production")
	if got := summaries(r.shows(path)); !slices.Contains(got, "audit: closed (default), mode Audit") {
		t.Errorf("got %q", got)
	}
	r.change(obj, func() {
		obj.Spec.GateRefs, obj.Spec.Selector, obj.Generation = nil, &v1alpha1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}, 3
	})
	r.load("production")
	if got := summaries(r.shows(path)); !slices.Equal(got, []string{"No gate in namespace apps has the labels of this calendar"}) {
		t.Errorf("got %q", got)
	}
}

func TestCalendarReportsMissingGatesAndEvents(t *testing.T) {
	var gates []client.Object
	for i := range maxGates + 20 {
		gates = append(gates, gateOf(fmt.Sprintf("g%03d", i)))
	}
	r, path := serving(t, func(c *v1alpha1.CalendarFeed) { c.Spec.Days = 365; onlyClosed(c) }, gates...)
	events := r.shows(path)
	said := summaries(events)[len(events)-2:]
	if want := []string{"The calendar ends here", "20 gates are missing in this calendar, which is limited to 100"}; len(events) != maxEvents+2 || !slices.Equal(said, want) {
		t.Errorf("%d events, it ends with %q", len(events), said)
	}
	if n := r.get(path).Body.Len(); n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
}

// A gate whose windows come every minute costs only as much as the windows that are shown.
func TestGateChangingEveryMinuteIsTruncated(t *testing.T) {
	busy := func(g *v1alpha1.Gate) {
		schedule, duration := "*/2 * * * *", v1alpha1.Duration{Duration: time.Minute}
		g.Spec.OpenPeriods = []v1alpha1.Period{{Name: "busy", Schedule: &schedule, Duration: &duration}}
	}
	r, path := serving(t, func(c *v1alpha1.CalendarFeed) { c.Spec.Days = 365; onlyOpened(c) }, gateOf("busy", busy))
	events := r.shows(path)
	if got := summaries(events)[len(events)-1]; len(events) != maxEvents+1 || got != "The calendar ends here" {
		t.Errorf("%d events, the last is %q: %s", len(events), got, events[0].GetProperty(ics.ComponentPropertyDescription).Value)
	}
}

func TestFeedIsReadableByICalPackage(t *testing.T) {
	r, path := serving(t, onlyClosed, gateOf("web"), gateOf("shop"))
	events := r.shows(path)
	text := strings.ReplaceAll(r.get(path).Body.String(), "TRANSP:TRANSPARENT", "TRANSP:OPAQUE")
	read, err := ical.Read(text, ical.Options{From: testNow.AddDate(0, 0, -9), Until: testNow.AddDate(0, 0, 9)})
	if err != nil || len(read.Occurrences) != len(events) || len(events) != 16 {
		t.Errorf("%d events of %d, %v", len(read.Occurrences), len(events), err)
	}
}
