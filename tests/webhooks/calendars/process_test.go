package calendars

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const token = "s3cr3t-0123456789abcdef"

// received is a response to a reader.
type received struct {
	code   int
	header http.Header
	body   string
}

func (s *served) get(w *harness.World, path string, headers ...string) (received, error) {
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		return received{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return received{}, err
	}
	body, err := io.ReadAll(response.Body)
	return received{response.StatusCode, response.Header, string(body)}, errors.Join(err, response.Body.Close())
}

// shows waits until a calendar has an event with a summary, and returns the response.
func (s *served) shows(w *harness.World, path, summary string) (got received) {
	w.Helper()
	w.Eventually("the calendar shows "+summary, func() (err error) {
		if got, err = s.get(w, path); err != nil {
			return err
		}
		calendar, err := ics.ParseCalendar(strings.NewReader(got.body))
		if err != nil || got.code != http.StatusOK {
			return fmt.Errorf("%d %s: %w", got.code, got.body, err)
		}
		var all []string
		for _, e := range calendar.Events() {
			if all = append(all, e.GetProperty(ics.ComponentPropertySummary).Value); all[len(all)-1] == summary {
				return nil
			}
		}
		return fmt.Errorf("the calendar has %q", all)
	})
	return got
}

// mayRead permits the controller to read the Secrets and ConfigMaps of a namespace, as config/calendar-feed and config/calendars do for
// all namespaces.
func mayRead(w *harness.World) {
	w.Helper()
	for _, args := range [][]string{
		{"create", "role", "calendar-feed", "--resource=secrets", "--verb=get"},
		{"create", "role", "calendars", "--resource=configmaps", "--resource-name=days", "--verb=get,list,watch"},
		{"create", "rolebinding", "calendar-feed", "--role=calendar-feed", "--serviceaccount=" + harness.RuntimeNamespace + ":gating-controller"},
		{"create", "rolebinding", "calendars", "--role=calendars", "--serviceaccount=" + harness.RuntimeNamespace + ":gating-controller"},
	} {
		_, err := w.Kubectl(w.Context(), append([]string{"--namespace", w.Namespace}, args...)...)
		w.Must(err)
	}
}

func TestReplicasServeSameCalendarAndFollowCluster(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	mayRead(w)
	w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "all"}, StringData: map[string]string{"token": token}})
	from, until := metav1.NewTime(time.Now().AddDate(0, 0, 3).Truncate(time.Second)), metav1.NewTime(time.Now().AddDate(0, 0, 5).Truncate(time.Second))
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}}})
	obj := &v1alpha1.CalendarFeed{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.CalendarFeedSpec{
		SecretRef: meta.LocalObjectReference{Name: "all"}, Selector: &v1alpha1.LabelSelector{}, State: v1alpha1.StateClosed,
	}}
	w.Create(obj)
	path := obj.GetCalendarPath(token)
	one, two := start(w, "--enable-leader-election"), start(w, "--enable-leader-election")
	const frozen = "production: closed (close period freeze)"
	first, second := one.shows(w, path, frozen), two.shows(w, path, frozen)
	if first.body != second.body || first.header.Get("ETag") != second.header.Get("ETag") {
		t.Errorf("the replicas differ:\n%s\n%s", first.body, second.body)
	}
	if got, err := two.get(w, path, "If-None-Match", first.header.Get("ETag")); err != nil || got.code != http.StatusNotModified || got.body != "" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, stranger := range []string{"/", "/calendar/", path + "x", "/metrics", "/hook/" + strings.TrimSuffix(strings.TrimPrefix(path, "/calendar/"), ".ics")} {
		if got, err := one.get(w, stranger); err != nil || got.code != http.StatusNotFound || got.body != "" {
			t.Errorf("%s: %+v, %v", stranger, got, err)
		}
	}

	g := w.ReadGate("production")
	w.Must(w.Rewrite(g, func() error {
		g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, v1alpha1.ClosePeriod{Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{
			ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}}}})
		return w.Client.Update(w.Context(), g)
	}))
	broken := two.shows(w, path, "production: closed (close period holidays)")
	if !strings.Contains(strings.ReplaceAll(broken.body, "\r\n ", ""), "does not exist") {
		t.Errorf("the calendar does not report the cause: %s", broken.body)
	}
	day := time.Now().AddDate(0, 0, 8).UTC().Format("20060102")
	w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "days"}, Data: map[string]string{
		"no.ics": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:" + day + "\nSUMMARY:Rest\nEND:VEVENT\nEND:VCALENDAR\n"}})
	for _, s := range []*served{one, two} {
		s.shows(w, path, "production: closed (close period holidays (Rest))")
		s.shows(w, path, frozen)
	}
	for _, s := range []*served{one, two} {
		log, err := os.ReadFile(s.Log)
		if hash := strings.TrimSuffix(strings.TrimPrefix(path, "/calendar/"), ".ics"); err != nil || strings.Contains(string(log), token) || strings.Contains(string(log), hash) ||
			!strings.Contains(string(log), `"logger":"calendars"`) {
			t.Errorf("%v, logged: %s", err, log)
		}
	}
}

// With shards, the controller that serves calendars includes the Gates of all shards.
func TestCalendarHasGatesOfAllShards(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	mayRead(w)
	w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "all"}, StringData: map[string]string{"token": token}})
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"sharding.fluxcd.io/key": "shard1"}}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
	w.Create(g)
	obj := &v1alpha1.CalendarFeed{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.CalendarFeedSpec{
		SecretRef: meta.LocalObjectReference{Name: "all"}, GateRefs: []v1alpha1.GateReference{{Name: "other"}},
	}}
	w.Create(obj)
	s := start(w, "--watch-label-selector=sharding.fluxcd.io/key notin (shard1)")
	s.shows(w, obj.GetCalendarPath(token), "other: closed (default)")
}
