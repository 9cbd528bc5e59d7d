package preview_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// holidays returns the manifest of a ConfigMap with an event on day from 11:00 to 12:00. summary may add lines to the event.
func holidays(summary string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: days, namespace: apps}\ndata:\n  no.ics: |\n    BEGIN:VCALENDAR\n    VERSION:2.0\n" +
		"    BEGIN:VEVENT\n    UID:1\n    DTSTART:20261124T110000Z\n    DURATION:PT1H\n    SUMMARY:" + summary + "\n    END:VEVENT\n    END:VCALENDAR\n---\n"
}

// frozen returns the manifest of a Gate with a close period that is a calendar.
func frozen(key string) string {
	return strings.Replace(gate("shop", "14:00"), "openPeriods:",
		"closePeriods: [{name: holidays, calendar: {configMapRef: {name: days, key: "+key+"}}}]\n  openPeriods:", 1)
}

// events returns a calendar with an event for each text, which adds lines to it.
func events(lines ...string) string {
	text := "BEGIN:VCALENDAR\nVERSION:2.0\n"
	for i, line := range lines {
		text += fmt.Sprintf("BEGIN:VEVENT\nUID:%d\nDTSTART:20261124T110000Z\nDURATION:PT1H\n%sEND:VEVENT\n", i, strings.ReplaceAll(line, ";", "\n"))
	}
	return text + "END:VCALENDAR\n"
}

const notThere = "gates.yaml: apps/shop: spec.closePeriods[0].calendar: ConfigMap apps/days, key no.ics: is not in the manifests: the preview treats it as closed"

func TestPreviewReadsCalendars(t *testing.T) {
	inCluster := func(g *v1alpha1.Gate) {
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{
			ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}}}}}
	}
	cluster := func(files *timetable.Files, err error) *preview.Set {
		set := preview.FromCluster([]*v1alpha1.Gate{known("shop", inCluster)}, nil)
		for _, name := range set.ConfigMaps() {
			set.AddConfigMap(name, files, err)
		}
		return set
	}
	ofCluster := "apps/shop: spec.closePeriods[0].calendar: ConfigMap apps/days, key no.ics: "
	for name, tc := range map[string]struct {
		set            *preview.Set
		open, warnings string
	}{
		"in the manifests":       {manifests(t, frozen("no.ics"), holidays("Day")), "apps/shop 10:00-11:00 open period day\napps/shop 12:00-14:00 open period day", ""},
		"before its Gate":        {manifests(t, holidays("Day"), frozen("no.ics")), "apps/shop 10:00-11:00 open period day\napps/shop 12:00-14:00 open period day", ""},
		"not in the manifests":   {manifests(t, frozen("no.ics")), "", notThere},
		"in the cluster":         {cluster(&timetable.Files{Data: map[string]string{"no.ics": "BEGIN:VCALENDAR\nEND:VCALENDAR\n"}}, nil), "apps/shop 10:00-12:00 open period day", ofCluster + "line 1: VCALENDAR has no events"},
		"not in the cluster":     {cluster(nil, errors.New("does not exist")), "", ofCluster + "does not exist: the preview treats it as closed"},
		"without the key":        {cluster(&timetable.Files{}, nil), "", ofCluster + "does not exist in the ConfigMap: the preview treats it as closed"},
		"applied to the cluster": {cluster(nil, errors.New("does not exist")).Applied(manifests(t, holidays("Day"))), "apps/shop 10:00-11:00 open period day", ""},
	} {
		t.Run(name, func(t *testing.T) {
			open, warnings := opens(t, tc.set)
			if open != tc.open || warnings != tc.warnings {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", open, warnings, tc.open, tc.warnings)
			}
		})
	}
}

func TestPreviewReportsUncountedEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		events     []string
		categories []string
		want       string
	}{
		"all count":                {[]string{"", "TRANSP:OPAQUE;"}, nil, ""},
		"there are none":           {nil, nil, "line 1: VCALENDAR has no events"},
		"one is shown as free":     {[]string{"", "TRANSP:TRANSPARENT;"}, nil, "1 of 2 events does not count: 1 TRANSPARENT"},
		"some of each":             {[]string{"", "STATUS:CANCELLED;", "TRANSP:TRANSPARENT;", "TRANSP:TRANSPARENT;"}, nil, "3 of 4 events do not count: 2 TRANSPARENT, 1 CANCELLED"},
		"others are meant":         {[]string{"CATEGORIES:a;", "CATEGORIES:b;", "CATEGORIES:b;"}, []string{"a"}, ""},
		"one of those is not":      {[]string{"CATEGORIES:a;", "CATEGORIES:b;", "CATEGORIES:a;STATUS:CANCELLED;"}, []string{"a"}, "1 of 3 events does not count: 1 CANCELLED"},
		"no category is there":     {[]string{"CATEGORIES:a;", "CATEGORIES:b;"}, []string{"c"}, "2 of 2 events do not count: 2 of other categories"},
		"nothing is left":          {[]string{"CATEGORIES:a;", "STATUS:CANCELLED;"}, []string{"c"}, "2 of 2 events do not count: 1 CANCELLED, 1 of other categories"},
		"an older version is none": {[]string{"SEQUENCE:2;", "SEQUENCE:1;"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := events(tc.events...)
			if strings.Contains(text, "SEQUENCE") {
				text = strings.Replace(text, "UID:1", "UID:0", 1)
			}
			set := preview.FromCluster([]*v1alpha1.Gate{known("shop", func(g *v1alpha1.Gate) {
				g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{
					ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}, Categories: tc.categories}}}}
			})}, nil)
			set.AddConfigMap(preview.ConfigMap{Namespace: "apps", Name: "days"}, &timetable.Files{Data: map[string]string{"no.ics": text}}, nil)
			_, warnings := opens(t, set)
			want := ""
			if tc.want != "" {
				want = "apps/shop: spec.closePeriods[0].calendar: ConfigMap apps/days, key no.ics: " + tc.want
			}
			if warnings != want {
				t.Errorf("got  %s\nwant %s", warnings, want)
			}
		})
	}
}

func TestPreviewNamesEvents(t *testing.T) {
	report, _, err := manifests(t, frozen("no.ics"), holidays(`Day of\nRest`)).Preview(day)
	if err != nil {
		t.Fatal(err)
	}
	if i := report.Gates[0].Intervals[2]; i.By() != "holidays (Day of Rest)" || i.ShortReason() != "close period holidays (Day of Rest)" {
		t.Errorf("it is by %q", i.By())
	}
}

func TestUnreadableCalendarOfManifestIsError(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"a broken file":        {strings.Replace(holidays("Day"), "PT1H", "soon", 1), `gates.yaml: apps/days: data[no.ics]: `},
		"a key that is absent": {strings.Replace(holidays("Day"), "no.ics", "se.ics", 1), `gates.yaml: apps/days: data[no.ics]: does not exist in the ConfigMap`},
		"two of a name":        {holidays("a") + holidays("b"), `gates.yaml: apps/days: data[no.ics]: differs from the one in gates.yaml`},
		"data of another type": {strings.Replace(holidays("Day"), "no.ics: |", "no.ics: 7\n  x: |", 1), `gates.yaml: apps/days: data[no.ics]: `},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := manifests(t, frozen("no.ics"), tc.manifest).Preview(day)
			invalid := &preview.InvalidError{}
			if !errors.As(err, &invalid) || len(invalid.Faults) != 1 || !strings.HasPrefix(invalid.Faults[0].String(), tc.want) {
				t.Errorf("got %+v, want %s", err, tc.want)
			}
		})
	}
	if _, _, err := manifests(t, gate("shop", "14:00"), holidays("a"), holidays("b")).Preview(day); err != nil {
		t.Errorf("what no Gate refers to is not looked at: %v", err)
	}
}

func TestDiffNamesClosingEvent(t *testing.T) {
	before, after := manifests(t, frozen("no.ics"), strings.Replace(holidays("Day"), "20261124", "20261123", 1)), manifests(t, frozen("no.ics"), holidays("Day"))
	changes, _, err := preview.Diff(before, after, day)
	if err != nil || len(changes.Gates) != 1 || len(changes.Gates[0].Differences) != 1 {
		t.Fatalf("%+v, %v", changes, err)
	}
	if s := changes.Gates[0].Differences[0]; s.After.By() != "holidays (Day)" || s.Before.By() != "day" {
		t.Errorf("%+v", s)
	}
}
