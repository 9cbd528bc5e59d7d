package webauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// shopAndBank returns the objects of two namespaces: a Gate each, with an exception and a held target.
func shopAndBank() (all []client.Object) {
	for _, namespace := range []string{"shop", "bank"} {
		g := gateOf(namespace, "g-"+namespace)
		obj, source := held(namespace, "k-"+namespace, g.Name)
		all = append(all, g, exceptionOf(g, "e-"+namespace), obj, source)
	}
	return all
}

func TestUsersSeeWhatTheyMayRead(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	for _, c := range []struct {
		path, token string
		code        int
		texts       []string
	}{
		{"/", "token-of-ada", 200, []string{"g-shop", "g-bank", "!you may not"}},
		{"/gate/bank/g-bank", "token-of-ada", 200, []string{"e-bank", "m-g-bank", "k-bank", "main@sha1:11111111", "kubectl gate open"}},
		{"/gate/bank/none", "token-of-ada", 404, []string{"there is no gate"}},
		{"/target/Kustomization/bank/k-bank", "token-of-ada", 200, []string{"is held by gate g-bank", "main@sha1:11111111", "kubectl gate open"}},
		{"/target/Kustomization/bank/none", "token-of-ada", 404, []string{"there is no Kustomization"}},
		{"/target/Secret/bank/none", "token-of-ada", 404, []string{"gates hold no objects of kind"}},

		{"/", "token-of-ben", 200, []string{"g-shop", "!bank", "you may not list gates in all namespaces, these are the gates of shop"}},
		{"/gate/shop/g-shop", "token-of-ben", 200, []string{"e-shop", "m-g-shop", "k-shop", "source unknown", "!main@sha1:11111111"}},
		{"/gate/bank/g-bank", "token-of-ben", 403, []string{"if there is one", "gate-viewer", "!m-g-bank"}},
		{"/gate/bank/none", "token-of-ben", 403, []string{"if there is one"}},
		{"/gate/bank/g-bank/month", "token-of-ben", 403, []string{"if there is one"}},
		{"/target/Kustomization/shop/k-shop", "token-of-ben", 200, []string{"is held by gate g-shop", "you may not list gates in all namespaces", "!main@sha1:11111111"}},
		{"/target/Kustomization/bank/k-bank", "token-of-ben", 403, []string{"if there is one", "!g-bank"}},
		{"/target/Kustomization/bank/none", "token-of-ben", 403, []string{"if there is one"}},

		{"/", "token-of-cy", 403, []string{"you may not list gates in any namespace", "Ask an administrator", "!shop"}},
		{"/gate/shop/g-shop", "token-of-cy", 403, []string{"if there is one"}},
		{"/gate/shop/none", "token-of-cy", 403, []string{"if there is one"}},
		{"/target/Kustomization/shop/k-shop", "token-of-cy", 403, []string{"if there is one"}},

		{"/", "", 401, []string{"the request has no token", "kubectl gate ui", "!shop"}},
		{"/gate/shop/g-shop", "", 401, []string{"the request has no token", "!shop<"}},
		{"/", "nobody's", 401, []string{"rejects your token"}},
		{"/badge/shop/g-shop.svg", "token-of-ada", 404, []string{"there is no such page"}},
		{"/api/v1/namespaces/bank/gates/g-bank", "token-of-ada", 200, []string{`"name":"g-bank","state":"`}},
		{"/api/v1/namespaces/bank/gates/none", "token-of-ada", 404, []string{"there is no gate"}},
		{"/api/v1/namespaces/shop/gates/g-shop", "token-of-ben", 200, []string{`"name":"g-shop","state":"`}},
		{"/api/v1/namespaces/bank/gates/g-bank", "token-of-ben", 403, []string{"if there is one", "!state"}},
		{"/api/v1/namespaces/bank/gates/g-bank", "", 401, []string{"the request has no token"}},
		{"/changes", "", 401, nil},
		{"/changes", "nobody's", 401, nil},
	} {
		p.answers(c.path, c.token, c.code, c.texts...)
	}
	if p.server.other > 0 {
		t.Errorf("%d things were created that are no reviews", p.server.other)
	}
	for _, token := range []string{"token-of", "nobody's"} {
		if strings.Contains(p.logged.String(), token) {
			t.Errorf("a token is logged: %s", p.logged)
		}
	}
}

// The 403 for an existing object is the same as that for a missing one, except for the name.
func TestExistenceIsNotRevealed(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	for _, path := range []string{"/gate/bank/%s", "/gate/bank/%s/month", "/api/v1/namespaces/bank/gates/%s", "/target/Kustomization/bank/%s"} {
		for _, pair := range [][2]string{{"g-bank", "g-none"}, {"k-bank", "k-none"}} {
			code1, there := p.get(fmt.Sprintf(path, pair[0]), "token-of-ben")
			code2, not := p.get(fmt.Sprintf(path, pair[1]), "token-of-ben")
			if code1 != 403 || code2 != 403 || strings.ReplaceAll(there, pair[0], "x") != strings.ReplaceAll(not, pair[1], "x") {
				t.Errorf("%s: %d and %d:\n%s\n%s", path, code1, code2, there, not)
			}
		}
	}
	empty := newPages(t, nil)
	if _, page := empty.get("/", "token-of-cy"); page != p.answers("/", "token-of-cy", 403) {
		t.Errorf("without any gate, who may see nothing is told something else: %s", page)
	}
}

func TestAnonymousViewersSeeNamesStatesAndTimes(t *testing.T) {
	p := newPages(t, anonymous, shopAndBank()...)
	secrets := []string{"!w-g-", "!m-g-", "!t-g-", "!e-shop", "!k-shop", "!window", "!outside", "!kubectl gate open", "!/calendar/", "!timeZone"}
	p.answers("/", "", 200, append(secrets, "g-shop", "g-bank", ">closed<", "until")...)
	p.answers("/gate/shop/g-shop", "", 200, append(secrets, "g-shop", ">closed<", "10:00")...)
	p.answers("/gate/shop/g-shop/month", "", 200, append(secrets, "November 2026")...)
	// A filter must not reveal what is not shown.
	p.answers("/?labels=team%3Dt-g-shop", "", 200, "No gate matches", "!>g-bank<")
	p.answers("/?text=outside", "", 200, "No gate matches")
	p.answers("/?text=g-bank", "", 200, ">g-bank<")
	p.answers("/gate/shop/none", "", 404)
	for _, path := range []string{"/target/Kustomization/shop/k-shop", "/target/Kustomization/shop/none", "/what-if"} {
		p.answers(path, "", 401, "names, states and times", "!shop<")
	}
	p.answers("/badge/shop/g-shop.svg", "", 200, "Gate g-shop: closed")
	p.answers("/badge/shop/none.svg", "", 404, "unknown")
	p.answers("/", "nobody's", 401, "rejects your token")
	p.answers("/", "token-of-cy", 403)
	p.answers("/gate/bank/g-bank", "token-of-ada", 200, "m-g-bank")
	if n := p.server.count("access"); n == 0 {
		t.Error("a token was not looked at")
	}
}

func TestReviewsAreCachedForSeconds(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	for range 5 {
		p.answers("/", "token-of-ben", 200)
		p.answers("/", "token-of-cy", 403)
		p.answers("/", "nobody's", 401)
	}
	if tokens, access := p.server.count("token"), p.server.count("access"); tokens != 3 || access > 12 {
		t.Errorf("it was asked %d times for tokens and %d times for access", tokens, access)
	}
	before := p.server.count("access")
	p.answers("/", "another-of-ada", 200)
	p.answers("/", "token-of-ada", 200)
	if n := p.server.count("access") - before; n > 3 {
		t.Errorf("for a second token of the same person, it was asked %d times", n)
	}
	p.server.change(func() {
		p.server.allowed["ben"], p.server.allowed["cy"] = nil, []string{"* gates * *"}
		delete(p.server.people, "token-of-ada")
		p.server.people["nobody's"] = "ada"
	})
	p.answers("/", "token-of-ben", 200)
	p.clock.SetTime(testNow.Add(reviewAge + 1))
	p.answers("/", "token-of-ben", 403)
	p.answers("/", "token-of-cy", 200)
	p.answers("/", "token-of-ada", 401)
	p.answers("/", "nobody's", 200)
}

func TestUnavailableAPIServerShowsNothing(t *testing.T) {
	for name, breaks := range map[string]func(*apiServer){
		"it fails":           func(s *apiServer) { s.err = errors.New("etcd at 10.0.0.7 is away") },
		"it does not answer": func(s *apiServer) { s.hangs = true },
		"it allows and fails": func(s *apiServer) {
			s.err = errors.New("etcd at 10.0.0.7 is away")
			s.allowed["cy"] = []string{"* * * *"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPages(t, anonymous, shopAndBank()...)
			p.answers("/", "token-of-ada", 200)
			p.server.change(func() { breaks(p.server) })
			p.answers("/", "token-of-ada", 200)
			p.clock.SetTime(testNow.Add(reviewAge + 1))
			for _, path := range []string{"/", "/gate/shop/g-shop"} {
				p.answers(path, "token-of-ada", 503, "cannot check your permissions now", "Try again", "!g-bank", "!10.0.0.7")
			}
			p.answers("/", "", 200)
			p.server.change(func() { p.server.err, p.server.hangs = nil, false })
			p.answers("/", "token-of-ada", 200)
			if !strings.Contains(p.logged.String(), "is config/ui installed?") {
				t.Errorf("nobody says so: %s", p.logged)
			}
		})
	}
}

func TestOnlyOneBearerTokenIsAccepted(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	for name, c := range map[string]struct {
		headers []string
		code    int
	}{
		"another case":           {[]string{"bearer token-of-ada"}, 200},
		"blanks around":          {[]string{"Bearer   token-of-ada  "}, 200},
		"two headers":            {[]string{"Bearer token-of-ada", "Bearer token-of-cy"}, 401},
		"a password":             {[]string{"Basic YTpi"}, 401},
		"no token":               {[]string{"Bearer"}, 401},
		"an empty one":           {[]string{"Bearer  "}, 401},
		"one that is too long":   {[]string{"Bearer " + strings.Repeat("x", maxToken+1)}, 401},
		"a token without scheme": {[]string{"token-of-ada"}, 401},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header["Authorization"] = c.headers
		w := httptest.NewRecorder()
		if p.ServeHTTP(w, r); w.Code != c.code || (w.Code == 401) != (w.Header().Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%s: %d, %v", name, w.Code, w.Header())
		}
	}
	// A proxy may add these headers, but so may any client.
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?token=token-of-ada", nil)
	for name, value := range map[string]string{"X-Forwarded-User": "ada", "X-Remote-User": "ada", "Impersonate-User": "ada", "X-Forwarded-Access-Token": "token-of-ada", "Cookie": "token=token-of-ada"} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	if p.ServeHTTP(w, r); w.Code != 401 {
		t.Errorf("who only says who they are gets %d", w.Code)
	}
}

func TestAnonymousReviewsAreLimited(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	p.answers("/", "token-of-ada", 200)
	codes := map[int]int{}
	for i := range 5000 {
		code, _ := p.get("/", fmt.Sprintf("made-up-%d", i))
		codes[code]++
	}
	if n := p.server.count("token"); n > unknownBurst+1 || codes[401] != n-1 || codes[429] != 5000-codes[401] {
		t.Errorf("it was asked %d times, answers: %v", n, codes)
	}
	if n := len(p.viewers.Reviews.invalid.Keys()); n > maxTokens {
		t.Errorf("%d are stored", n)
	}
	p.clock.SetTime(testNow.Add(reviewAge - time.Second))
	p.answers("/", "token-of-ada", 200)
	for second := range 2 * maxTokens / unknownPerSecond {
		p.clock.SetTime(testNow.Add(time.Duration(second) * time.Second))
		for i := range 2 * unknownPerSecond {
			p.get("/", fmt.Sprintf("made-up-%d-%d", second, i))
		}
	}
	p.answers("/", "token-of-ada", 200)
}

func TestReviewsPerUserAreLimited(t *testing.T) {
	p := newPages(t, nil, shopAndBank()...)
	codes := map[int]int{}
	tokens := []string{"token-of-cy", "another-of-cy"}
	for i := range 2 * accessBurst {
		code, _ := p.get(fmt.Sprintf("/gate/shop/made-up-%d", i), tokens[i%2])
		codes[code]++
	}
	if n := p.server.count("access"); n > accessBurst || codes[429] == 0 || codes[200] > 0 {
		t.Errorf("it was asked %d times, answers: %v", n, codes)
	}
	p.answers("/", "token-of-ada", 200)
}

func TestOmittedNamespacesAreReported(t *testing.T) {
	var all []client.Object
	for i := range maxNamespaces + 20 {
		all = append(all, gateOf(fmt.Sprintf("n-%03d", i), "g"))
	}
	p := newPages(t, nil, all...)
	p.server.allowed["ben"] = nil
	for i := range maxNamespaces + 20 {
		if i%2 == 0 {
			p.server.allowed["ben"] = append(p.server.allowed["ben"], fmt.Sprintf("list gates n-%03d *", i))
		}
	}
	p.answers("/", "token-of-ben", 200, "the gates of 20 more namespaces are left out", "these are the gates of 250 namespaces", ">n-002<", "!>n-003<")
}

const holidays = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nDTSTART:20261125T110000Z\nDURATION:PT1H\nSUMMARY:Day of Rest\nEND:VEVENT\nEND:VCALENDAR\n"

func TestCalendarIsShownToItsReaders(t *testing.T) {
	g := gateOf("shop", "g", func(g *v1alpha1.Gate) {
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}}}}}
	})
	p := newPages(t, nil, g)
	key := types.NamespacedName{Namespace: "shop", Name: "days"}
	p.configMaps.found[key] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "days", ResourceVersion: "1"}, Data: map[string]string{"no.ics": holidays}}
	p.answers("/", "token-of-ada", 200, "Day of Rest")
	p.answers("/", "token-of-ben", 200, "!Day of Rest")
	p.answers("/gate/shop/g", "token-of-ben", 200, "!Day of Rest", "you may not get configmap days")
	p.configMaps.found[key] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "days", ResourceVersion: "2"}, Data: map[string]string{"no.ics": strings.ReplaceAll(holidays, "Rest", "Play")}}
	p.answers("/", "token-of-ada", 200, "!Day of Rest", "Day of Play")
	p.configMaps.found[key] = nil
	p.answers("/gate/shop/g", "token-of-ada", 200, "does not exist")
	if p.configMaps.open != 1 {
		t.Errorf("%d watches are open", p.configMaps.open)
	}
	if err := p.objects.Delete(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	p.answers("/", "token-of-ada", 200, "There are no gates yet")
	if p.configMaps.open != 0 {
		t.Errorf("%d watches are open for nobody", p.configMaps.open)
	}
}

// If a page is loaded again, the old stream ends while the new one starts. The new one must receive changes of ConfigMaps.
func TestCalendarWatchSurvivesLeavingViewer(t *testing.T) {
	p := newPages(t, nil, gateOf("shop", "g"))
	p.viewers.watch(preview.ConfigMap{Namespace: "shop", Name: "days"})
	var first, second []string
	leave := p.viewers.listen(func(namespace string) { first = append(first, namespace) })
	p.configMaps.changed[0]()
	end := p.viewers.listen(func(namespace string) { second = append(second, namespace) })
	leave()
	p.configMaps.changed[0]()
	end()
	p.configMaps.changed[0]()
	if !slices.Equal(first, []string{"shop"}) || !slices.Equal(second, []string{"shop"}) {
		t.Errorf("the first hears %q, the second %q", first, second)
	}
}

func TestCalendarPathIsShownToItsReaders(t *testing.T) {
	c := &v1alpha1.CalendarFeed{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Spec: v1alpha1.CalendarFeedSpec{Selector: &v1alpha1.LabelSelector{}}, Status: v1alpha1.CalendarFeedStatus{CalendarPath: "/calendar/secret.ics"}}
	all := append(shopAndBank(), c)
	p := newPages(t, anonymous, all...)
	p.answers("/gate/shop/g-shop", "token-of-ada", 200, "/calendar/secret.ics")
	p.answers("/gate/shop/g-shop", "token-of-ben", 200, "!/calendar/secret.ics")
	p.answers("/gate/shop/g-shop", "", 200, "!/calendar/secret.ics")
	p = newPages(t, func(o *Options) { o.Calendars = false }, all...)
	p.answers("/gate/shop/g-shop", "token-of-ada", 200, "!/calendar/secret.ics")
}

func TestMetricsCountPagesAndReviewsWithoutNames(t *testing.T) {
	p := newPages(t, anonymous, shopAndBank()...)
	p.get("/", "token-of-ada")
	p.get("/gate/shop/g-shop", "token-of-cy")
	p.get("/gate/shop/other", "token-of-cy")
	p.get("/nothing/at/all", "")
	p.get("/", "nobody's")
	p.get("/badge/shop/g-shop.svg", "")
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			text := family.GetName()
			for _, label := range m.GetLabel() {
				text += " " + label.GetValue()
			}
			if family.GetName() == "gating_ui_requests_total" {
				text += fmt.Sprint(" ", m.GetCounter().GetValue())
			}
			got = append(got, strings.TrimPrefix(text, "gating_ui_"))
		}
	}
	want := []string{
		"requests_total 200 / 1", "requests_total 200 /badge/{namespace}/{file} 1", "requests_total 401 / 1", "requests_total 403 /gate/{namespace}/{name} 2", "requests_total 404 / 1",
		"reviews_total no access", "reviews_total no token", "reviews_total yes access", "reviews_total yes token",
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
