package calendarfeed

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/endpoint"
)

// production returns a replica with a Gate and a calendar, and the path of the calendar.
func production(t *testing.T) (*replica, string) {
	t.Helper()
	r := newReplica(t, newObjects(t, gateOf("web"), calendarOf("production"), secretOf("production", "token", "t0")))
	return r, r.load("production")
}

func TestCalendarHasCacheHeaders(t *testing.T) {
	r, path := production(t)
	got := r.get(path)
	for name, want := range map[string]string{
		"Content-Type": "text/calendar; charset=utf-8", "Cache-Control": "private, max-age=300", "X-Content-Type-Options": "nosniff",
		"Last-Modified": "Tue, 24 Nov 2026 09:30:00 GMT",
	} {
		if got.Header().Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header().Get(name), want)
		}
	}
	if tag := got.Header().Get("ETag"); got.Code != http.StatusOK || len(tag) != 66 || tag[0] != '"' {
		t.Errorf("%d, ETag %s", got.Code, tag)
	}
	events := r.shows(path)
	if len(events) != 15 || events[0].GetProperty(ics.ComponentPropertyDtStart).Value != "20261123T120000Z" {
		t.Errorf("%d events: %q", len(events), summaries(events))
	}
	head := r.do(http.MethodHead, path)
	if head.Code != http.StatusOK || head.Body.Len() > 0 || head.Header().Get("ETag") != got.Header().Get("ETag") || head.Header().Get("Content-Length") != got.Header().Get("Content-Length") {
		t.Errorf("HEAD: %d, %v", head.Code, head.Header())
	}
}

func TestUnchangedCalendarIsNotModified(t *testing.T) {
	r, path := production(t)
	first := r.get(path)
	tag, modified := first.Header().Get("ETag"), first.Header().Get("Last-Modified")
	for name, tc := range map[string]struct {
		headers []string
		code    int
	}{
		"the same tag":                    {[]string{"If-None-Match", tag}, http.StatusNotModified},
		"one of several":                  {[]string{"If-None-Match", `"x", W/` + tag}, http.StatusNotModified},
		"any":                             {[]string{"If-None-Match", "*"}, http.StatusNotModified},
		"another tag":                     {[]string{"If-None-Match", `"x"`}, http.StatusOK},
		"the same time":                   {[]string{"If-Modified-Since", modified}, http.StatusNotModified},
		"a later time":                    {[]string{"If-Modified-Since", "Wed, 25 Nov 2026 09:30:00 GMT"}, http.StatusNotModified},
		"an earlier time":                 {[]string{"If-Modified-Since", "Mon, 23 Nov 2026 09:30:00 GMT"}, http.StatusOK},
		"a time that is none":             {[]string{"If-Modified-Since", "yesterday"}, http.StatusOK},
		"another tag and the same time":   {[]string{"If-None-Match", `"x"`, "If-Modified-Since", modified}, http.StatusOK},
		"the same tag and an earlier one": {[]string{"If-None-Match", tag, "If-Modified-Since", "Mon, 23 Nov 2026 09:30:00 GMT"}, http.StatusNotModified},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got := r.do(method, path, tc.headers...)
			if got.Code != tc.code || got.Code == http.StatusNotModified && (got.Body.Len() > 0 || got.Header().Get("ETag") != tag) {
				t.Errorf("%s, %s: %d", name, method, got.Code)
			}
		}
	}
}

func TestOtherMethodsAreRefusedEquallyOnAllPaths(t *testing.T) {
	r, path := production(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "BREW"} {
		for _, p := range []string{path, "/calendar/unknown.ics"} {
			got := r.do(method, p, "X-HTTP-Method-Override", "GET")
			if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" || got.Body.Len() > 0 {
				t.Errorf("%s %s: %d %v", method, p, got.Code, got.Header())
			}
		}
	}
}

func TestUnknownPathRevealsNothing(t *testing.T) {
	r, path := production(t)
	hash := strings.TrimSuffix(strings.TrimPrefix(path, "/calendar/"), ".ics")
	first := ""
	for _, p := range []string{
		"/", "/calendar", "/calendar/", "/calendar/" + hash, "/calendar/" + hash + ".ICS", "/calendar/" + strings.ToUpper(hash) + ".ics", path + "/", "/" + path, "/hook/" + hash,
		"/calendar/../calendar/" + hash + ".ics", "/x/.." + path, "/calendar/%2e%2e/" + hash + ".ics", path + "%00", "/calendar/" + hash[:63] + ".ics", "/apps/production", "/metrics",
		"/" + strings.Repeat("a", 8000),
	} {
		got := r.get(p)
		if text := got.Result().Status + got.Body.String() + strings.Join(got.Header().Values("Content-Type"), ""); first == "" {
			first = text
		} else if text != first {
			t.Errorf("%s: %q, others get %q", p, text, first)
		}
		if got.Code != http.StatusNotFound || got.Body.Len() > 0 {
			t.Errorf("%s: %d %s", p, got.Code, got.Body)
		}
	}
	if r.get(path).Code != http.StatusOK || strings.Contains(r.logged.String(), hash) || strings.Contains(r.logged.String(), "t0") {
		t.Errorf("logged: %s", r.logged)
	}
}

func TestMetricHasCodesByCalendarWithoutPaths(t *testing.T) {
	r, path := production(t)
	r.get(path)
	r.get(path, "If-None-Match", "*")
	for range 3 {
		r.get("/calendar/a.ics")
	}
	families, err := r.registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "gating_calendar_requests_total" {
		t.Fatalf("%v, %v", families, err)
	}
	var got []string
	for _, m := range families[0].GetMetric() {
		line := fmt.Sprint(m.GetCounter().GetValue())
		for _, l := range m.GetLabel() {
			line += " " + l.GetName() + "=" + l.GetValue()
		}
		got = append(got, line)
	}
	slices.Sort(got)
	if want := []string{"1 code=200 name=production namespace=apps", "1 code=304 name=production namespace=apps", "3 code=404 name= namespace="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPreviousTokenKeepsWorkingForGracePeriod(t *testing.T) {
	r, old := production(t)
	secret := secretOf("production")
	r.change(secret, func() { secret.Data = map[string][]byte{"token": []byte("t1"), "previousToken": []byte("t0")} })
	path := r.load("production")
	one, two := r.get(old), r.get(path)
	if path == old || one.Code != http.StatusOK || two.Code != http.StatusOK || one.Body.String() != two.Body.String() {
		t.Errorf("%s %d, %s %d", old, one.Code, path, two.Code)
	}
	r.change(secret, func() { secret.Data = map[string][]byte{"token": []byte("t1")} })
	r.load("production")
	if r.get(old).Code != http.StatusNotFound || r.get(path).Code != http.StatusOK {
		t.Error("the token that was taken out is good still")
	}
	if webhook := (&v1alpha1.GateReceiver{ObjectMeta: calendarOf("production").ObjectMeta}).GetWebhookPath("t1"); strings.Contains(path, strings.TrimPrefix(webhook, "/hook/")) {
		t.Error("the path gives away that of a receiver")
	}
}

func TestCalendarIsGoneWithoutObjectSecretOrToken(t *testing.T) {
	for name, lose := range map[string]func(r *replica) (refused bool){
		"without the Secret": func(r *replica) bool {
			return r.objects.Delete(r.Context(), secretOf("production")) == nil && r.refused()
		},
		"without the token": func(r *replica) bool {
			secret := secretOf("production")
			r.change(secret, func() { secret.Data = map[string][]byte{"previousToken": []byte("t0")} })
			return r.refused()
		},
		"without itself": func(r *replica) bool {
			r.Table.Forget(client.ObjectKey{Namespace: "apps", Name: "production"})
			return r.Table.Len() == 0
		},
	} {
		r, path := production(t)
		if r.get(path); !lose(r) {
			t.Errorf("%s: it is there still", name)
		}
		if got := r.get(path); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, got.Code)
		}
	}
}

// refused returns whether the calendar production cannot be loaded, and a retry would not help.
func (r *replica) refused() bool {
	r.Helper()
	obj := calendarOf("production")
	path, err := r.Table.Load(r.Context(), obj)
	return path == "" && errors.As(err, new(*endpoint.Refused))
}

func TestUnavailableAPIServerGivesNoNotFound(t *testing.T) {
	r, path := production(t)
	r.objects.secretErr = errors.New("away")
	if _, err := r.Table.Load(r.Context(), calendarOf("production")); err == nil || errors.As(err, new(*endpoint.Refused)) {
		t.Errorf("got %v", err)
	}
	if _, err := r.Table.Load(r.Context(), calendarOf("staging")); err == nil {
		t.Error("it was loaded")
	}
	if one, other := r.get(path).Code, r.get("/calendar/unknown.ics").Code; one != http.StatusOK || other != http.StatusServiceUnavailable {
		t.Errorf("the known one %d, the others %d", one, other)
	}
}

func TestSuspendedCalendarKeepsClientCopies(t *testing.T) {
	r, path := production(t)
	obj := calendarOf("production")
	r.change(obj, func() { obj.Spec.Suspend = true })
	r.load("production")
	if got := r.get(path); got.Code != http.StatusServiceUnavailable || strings.Contains(got.Body.String(), "BEGIN") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestCalendarWithInvalidSelectionIsRefused(t *testing.T) {
	r := newReplica(t, newObjects(t, secretOf("a", "token", "t")))
	for name, change := range map[string]func(*v1alpha1.CalendarFeed){
		"neither": func(c *v1alpha1.CalendarFeed) { c.Spec.Selector = nil },
		"both":    func(c *v1alpha1.CalendarFeed) { c.Spec.GateRefs = []v1alpha1.GateReference{{Name: "web"}} },
		"a selector that is none": func(c *v1alpha1.CalendarFeed) {
			c.Spec.Selector.MatchLabels = map[string]string{"a b": "c d"}
		},
	} {
		_, err := r.Table.Load(t.Context(), calendarOf("a", change))
		refused := (*endpoint.Refused)(nil)
		if !errors.As(err, &refused) || refused.Reason() != v1alpha1.InvalidSpecReason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRateLimitIsPerCalendar(t *testing.T) {
	r := newReplica(t, newObjects(t, gateOf("web"), calendarOf("a"), secretOf("a", "token", "t"), calendarOf("b"), secretOf("b", "token", "t")))
	one, other := r.load("a"), r.load("b")
	codes := map[int]int{}
	for range burst + 50 {
		codes[r.get(one).Code]++
	}
	r.load("a")
	if codes[http.StatusOK] != burst || codes[http.StatusTooManyRequests] != 50 || r.get(one).Code != http.StatusTooManyRequests || r.get(other).Code != http.StatusOK {
		t.Errorf("%v", codes)
	}
	r.clock.SetTime(testNow.Add(time.Second))
	if r.get(one).Code != http.StatusOK {
		t.Error("a second later it is refused still")
	}
}

func TestCachedPollReadsAndComputesNothing(t *testing.T) {
	r, path := production(t)
	r.get(path)
	lists, secrets := r.objects.lists, r.objects.secrets
	for range 50 {
		r.get(path)
	}
	if r.objects.lists != lists || r.objects.secrets != secrets {
		t.Errorf("%d lists and %d reads of Secrets", r.objects.lists-lists, r.objects.secrets-secrets)
	}
	e, _ := r.Table.Find(path)
	before := &e.page.latest.body[0]
	r.later()
	r.get(path)
	if r.objects.lists == lists {
		t.Error("it does not look any more")
	}
	if &e.page.latest.body[0] != before {
		t.Error("it computes what has not changed")
	}
}

func TestConcurrentReadersGetSameFeed(t *testing.T) {
	r, path := production(t)
	var group sync.WaitGroup
	bodies := make([]string, 64)
	for i := range bodies {
		group.Go(func() {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			bodies[i] = w.Body.String()
			if i%8 == 0 {
				r.later()
				r.load("production")
			}
		})
	}
	group.Wait()
	for _, body := range bodies {
		if body != bodies[0] || body == "" {
			t.Fatalf("got %q and %q", body, bodies[0])
		}
	}
}
