package policies

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// People subscribe to the path.
func TestWhoEditsCalendarsWritesThemAndNotWhereTheyAre(t *testing.T) {
	w := newWorld(t)
	cora := w.as("cora", calendarEditor, calendarViewer)
	vic, clara := w.as("vic", viewer, opener), w.clusterAdmin()
	w.allowed(cora, "create", "-f", w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"CalendarFeed","metadata":{"name":"all"},`+
		`"spec":{"secretRef":{"name":"token"},"selector":{}},"status":{"calendarPath":"/calendar/of-mallory.ics"}}`))
	w.allowed(cora, "patch", "calendarfeed", "all", "--type=merge", "-p", `{"spec":{"days":7},"status":{"calendarPath":"/calendar/of-mallory.ics"}}`)
	for _, p := range []*person{cora, vic, clara} {
		out, err := p.kubectl(w.Context(), w.Namespace, "patch", "calendarfeed", "all", "--subresource=status", "--type=merge", "-p", `{"status":{"calendarPath":"/calendar/of-mallory.ics"}}`)
		if err == nil {
			t.Fatalf("%s writes the status: %s", p.Name, out)
		}
		if want := "may not write the status of calendar feed " + w.Namespace + "/all: it says to what people subscribe"; p == clara && !strings.Contains(out+err.Error(), want) {
			t.Errorf("%s is told %s, %v", p.Name, out, err)
		}
	}
	if out, err := vic.kubectl(w.Context(), w.Namespace, "get", "calendarfeeds"); err == nil || !strings.Contains(out+err.Error(), `cannot list resource "calendarfeeds"`) {
		t.Errorf("who sees gates sees the paths of calendars: %s, %v", out, err)
	}
	obj := &v1alpha1.CalendarFeed{}
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "all"}, obj))
	if obj.Status.CalendarPath != "" || obj.Spec.Days != 7 {
		t.Errorf("%+v", obj)
	}
}
