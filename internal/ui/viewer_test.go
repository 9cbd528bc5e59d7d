package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestRefusedViewerGetsNextStep(t *testing.T) {
	t.Parallel()
	for code, says := range map[int]string{
		http.StatusUnauthorized:       "Open the page through the ingress or the proxy where you sign in",
		http.StatusForbidden:          "Ask an administrator",
		http.StatusServiceUnavailable: "Try again in a moment",
	} {
		r := reader()
		r.refused = Refused{code, errors.New("so it is")}
		for _, path := range []string{"/", "/gate/shop/web", "/gate/shop/none", "/gate/shop/web/month", "/target/Kustomization/shop/apps", "/what-if", "/nothing"} {
			recorder := httptest.NewRecorder()
			pages(t, r).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			page := recorder.Body.String()
			if recorder.Code != code || !strings.Contains(page, "so it is") || !strings.Contains(page, says) || strings.Contains(page, "team") {
				t.Errorf("%s answers %d: %s", path, recorder.Code, mainOf(page))
			}
			if asks := recorder.Header().Get("WWW-Authenticate"); (asks == "Bearer") != (code == http.StatusUnauthorized) {
				t.Errorf("%s asks for %q", path, asks)
			}
		}
		if r.asked.Load() > 0 {
			t.Error("gates were read")
		}
		if got, body := get(t, r, "/changes"); got != code || strings.Contains(body, "retry") {
			t.Errorf("changes answer %d: %s", got, body)
		}
	}
}

func TestBareViewerSeesOnlyNamesStatesAndTimes(t *testing.T) {
	t.Parallel()
	r := reader()
	r.bare = true
	r.gates[0].Spec.OpenPeriods[0].Name = "secret-window"
	r.gates[0].Status.LastTransition.Period = "secret-window"
	r.gates[0].Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "secret message"}}
	r.gates[0].Status.History = []v1alpha1.HistoryEntry{{State: v1alpha1.StateOpened, At: metav1.NewTime(noon), RequestedBy: "secret-person"}}
	for path, texts := range map[string][]string{
		"/":                    {">web<", ">opened<", "until</small>", "<title>opened Thu 26 Nov 10:00 – 16:00</title>", "sign in to see more"},
		"/gate/shop/web":       {">opened<", "until <time", "<title>closed ", "Next"},
		"/gate/shop/web/month": {"web</a> in November 2026", "<b>10:00</b>"},
	} {
		page := shows(t, r, path, texts...)
		for _, secret := range []string{"secret", "hotfix", "Kustomization", "kubectl gate", "timeZone", "window", "outside", "What if", "labels"} {
			if strings.Contains(page, secret) {
				t.Errorf("%s has %q: %s", path, secret, mainOf(page))
			}
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		recorder := httptest.NewRecorder()
		pages(t, r).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, "/what-if", strings.NewReader("x")))
		if recorder.Code != http.StatusUnauthorized {
			t.Errorf("%s /what-if answers %d", method, recorder.Code)
		}
	}
}

func TestBadgeHasStateAsTextAndColor(t *testing.T) {
	t.Parallel()
	r := reader()
	r.gates = append(r.gates, gateOf("watched", func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }), gateOf("paused.at-night", func(g *v1alpha1.Gate) { g.Spec.Suspend = true }))
	options := optionsOf(r, time.UTC)
	options.Anonymous = r
	badges := New(options)
	for path, want := range map[string]struct {
		code  int
		title string
		color string
	}{
		"/badge/shop/web.svg":             {200, "Gate web: open", "#157a3a"},
		"/badge/shop/db.svg":              {200, "Gate db: closed", "#5a6673"},
		"/badge/bank/new.svg":             {200, "Gate new: unknown", "#8a4b00"},
		"/badge/shop/watched.svg":         {200, "Gate watched: open (audit)", "#157a3a"},
		"/badge/shop/paused.at-night.svg": {200, "Gate paused.at-night: open (suspended)", "#157a3a"},
		"/badge/shop/none.svg":            {404, "Gate gate: unknown", "#8a4b00"},
		"/badge/shop/web.png":             {404, "Gate gate: unknown", "#8a4b00"},
		"/badge/shop/%3Cscript%3E.svg":    {404, "Gate gate: unknown", "#8a4b00"},
	} {
		recorder := httptest.NewRecorder()
		badges.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		picture, header := recorder.Body.String(), recorder.Header()
		if recorder.Code != want.code || !strings.Contains(picture, "<title>"+want.title+"</title>") || !strings.Contains(picture, `aria-label="`+want.title+`"`) ||
			!strings.Contains(picture, want.color) || !strings.HasPrefix(picture, "<svg ") || strings.Contains(picture, "script") {
			t.Errorf("%s answers %d: %s", path, recorder.Code, picture)
		}
		if header.Get("Cache-Control") != "public, max-age=10" || header.Get("Content-Type") != "image/svg+xml" || header.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
			t.Errorf("%s: %v", path, header)
		}
	}
	r.err = errors.New("no cluster")
	recorder := httptest.NewRecorder()
	badges.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/badge/shop/web.svg", nil))
	if recorder.Code != http.StatusBadGateway || !strings.Contains(recorder.Body.String(), "unknown") {
		t.Errorf("without a cluster it answers %d", recorder.Code)
	}
	if code, _ := get(t, reader(), "/badge/shop/web.svg"); code != http.StatusNotFound {
		t.Errorf("where nobody may see anything without a token, a badge answers %d", code)
	}
}

func TestGatePageNamesItsCalendars(t *testing.T) {
	t.Parallel()
	r := reader()
	of := func(name, path string, change func(*v1alpha1.CalendarFeed)) v1alpha1.CalendarFeed {
		c := v1alpha1.CalendarFeed{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: v1alpha1.CalendarFeedStatus{CalendarPath: path}}
		change(&c)
		return c
	}
	all := func(c *v1alpha1.CalendarFeed) { c.Spec.Selector = &v1alpha1.LabelSelector{} }
	r.calendars = []v1alpha1.CalendarFeed{
		of("team", "/calendar/a.ics", func(c *v1alpha1.CalendarFeed) {
			c.Spec.Selector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}
		}),
		of("named", "/calendar/b.ics", func(c *v1alpha1.CalendarFeed) { c.Spec.GateRefs = []v1alpha1.GateReference{{Name: "web"}} }),
		of("no-path", "", all),
		of("others", "/calendar/c.ics", func(c *v1alpha1.CalendarFeed) { c.Spec.GateRefs = []v1alpha1.GateReference{{Name: "db"}} }),
		of("elsewhere", "/calendar/d.ics", func(c *v1alpha1.CalendarFeed) { all(c); c.Namespace = "bank" }),
		of("nothing", "/calendar/e.ics", func(*v1alpha1.CalendarFeed) {}),
	}
	page := shows(t, r, "/gate/shop/web", "Subscribe", "<dt><code>/calendar/b.ics</code></dt><dd>named</dd><dt><code>/calendar/a.ics</code></dt><dd>team</dd>")
	if n := strings.Count(page, "/calendar/"); n != 2 {
		t.Errorf("it names %d calendars", n)
	}
	r.bare = true
	if page := shows(t, r, "/gate/shop/web"); strings.Contains(page, "/calendar/") {
		t.Error("a secret path is shown without a token")
	}
}

func TestPageIsRenderedOnceForEqualViewers(t *testing.T) {
	t.Parallel()
	load := func(handler http.Handler, path string) string {
		_, page := asks(t, handler, path, time.Minute)
		return page
	}
	for name, c := range map[string]struct {
		change func(*fake)
		path   string
		same   bool
	}{
		"a gate has changed, and nobody says so": {func(r *fake) { r.gates[0].Status.LastTransition.Period = "other" }, "/", true},
		"a gate has changed":                     {func(r *fake) { r.gates[0].ResourceVersion, r.gates[0].Status.LastTransition.Period = "2", "other" }, "/", false},
		"somebody sees less":                     {func(r *fake) { r.gates = r.gates[:2] }, "/", false},
		"there is another note":                  {func(r *fake) { r.notes = []string{"other"} }, "/", false},
		"only states are seen":                   {func(r *fake) { r.bare = true }, "/", false},
		"another filter":                         {func(*fake) {}, "/?state=closed", false},
		"another zone":                           {func(*fake) {}, "/?zone=UTC", false},
		"something that no page knows":           {func(*fake) {}, "/?other=1", true},
	} {
		r := reader()
		r.versioned = true
		handler := pages(t, r)
		before := load(handler, "/")
		if c.change(r); (load(handler, c.path) == before) != c.same {
			t.Errorf("%s: the page is the same: %v", name, !c.same)
		}
	}
}

func TestViewersAreNotNotifiedOfInvisibleChanges(t *testing.T) {
	t.Parallel()
	r := &fake{blind: true}
	lines := hears(t, r, pages(t, r))
	r.changed("bank")
	select {
	case line := <-lines:
		t.Fatalf("it hears %q", line)
	case <-time.After(2 * burst):
	}
	r.mu.Lock()
	r.err = Refused{http.StatusForbidden, errors.New("no more")}
	r.mu.Unlock()
	r.changed("shop")
	if line, open := <-lines; open {
		t.Errorf("whose rights are gone hears %q", line)
	}
}

func TestNotificationsWaitWhileRenderingShareIsUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since, cost, want time.Duration
	}{
		"the first news":        {time.Hour, time.Minute, 0},
		"soon after others":     {100 * time.Millisecond, 0, 900 * time.Millisecond},
		"pages cost little":     {100 * time.Millisecond, 50 * time.Millisecond, 900 * time.Millisecond},
		"pages cost much":       {time.Second, 2 * time.Second, 19 * time.Second},
		"they did, long ago":    {time.Minute, 2 * time.Second, 0},
		"the clock is set back": {-time.Minute, 0, 61 * time.Second},
	} {
		if got := pause(noon, c.cost, noon.Add(c.since)); got != c.want {
			t.Errorf("%s: they wait for %s, want %s", name, got, c.want)
		}
	}
}

func TestBrowserSetsTimeZone(t *testing.T) {
	t.Parallel()
	options := optionsOf(reader(), time.UTC)
	options.AnyZone = true
	handler := New(options)
	for path, want := range map[string]struct {
		code  int
		texts []string
	}{
		"/":                              {200, []string{`data-zone="any"`, "Times in UTC"}},
		"/?zone=Asia/Tokyo":              {200, []string{"Asia/Tokyo (JST)", `zone=Asia%2FTokyo`}},
		"/?zone=UTC":                     {200, []string{"Times in UTC"}},
		"/gate/shop/web?zone=gate":       {200, []string{"Europe/Oslo (CET)"}},
		"/?zone=Nowhere":                 {400, []string{"zone=Nowhere: must be a time zone"}},
		"/?zone=../../../etc/passwd":     {400, []string{"must be a time zone"}},
		"/?zone=%3Cscript%3E":            {400, []string{"&lt;script&gt;"}},
		"/gate/shop/web?zone=Asia/Tokyo": {200, []string{"Fri 2026-11-27 00:00"}},
	} {
		code, page := asks(t, handler, path, time.Minute)
		for _, text := range want.texts {
			if code != want.code || !strings.Contains(page, text) {
				t.Errorf("%s answers %d without %q: %s", path, code, text, page)
			}
		}
	}
	if page := shows(t, reader(), "/"); strings.Contains(page, "data-zone") {
		t.Error("a browser is asked although the zone is known")
	}
}

func TestSlowUploadBlocksNoPage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(pages(t, reader()))
	defer server.Close()
	for range 4 * maxPages {
		sends, fills := io.Pipe()
		defer fills.Close() //nolint:errcheck // it is a pipe
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/what-if", sends)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		go func() {
			if response, err := http.DefaultClient.Do(request); err == nil {
				_ = response.Body.Close()
			}
		}()
		if _, err := fmt.Fprint(fills, "--x\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Timeout: making / 2}
	for range 3 * maxPages {
		response, err := client.Get(server.URL) //nolint:noctx // it has a timeout
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", response, err)
		}
		_, _ = bufio.NewReader(response.Body).WriteTo(io.Discard)
		_ = response.Body.Close()
	}
}

// counted is a body that counts in read when it is read for the first time.
type counted struct {
	io.Reader
	read *atomic.Int32
	once sync.Once
}

// Read implements io.Reader.
func (c *counted) Read(into []byte) (int, error) {
	c.once.Do(func() { c.read.Add(1) })
	return c.Reader.Read(into)
}

func TestManifestsInMemoryAreLimited(t *testing.T) {
	t.Parallel()
	r := reader()
	r.gathers, r.key = make(chan struct{}), "viewer"
	h := pages(t, r)
	var read atomic.Int32
	codes := make(chan int)
	sends := func(within time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/what-if", &counted{Reader: strings.NewReader("--x--\r\n"), read: &read})
		request.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		codes <- recorder.Code
	}
	for range maxForms / 2 { // one viewer has half of them
		go sends(time.Minute)
	}
	eventually(t, "pages are made of some", func() bool { return r.asked.Load() == maxForms/2 })
	go sends(50 * time.Millisecond)
	if code := <-codes; code != http.StatusGatewayTimeout || read.Load() != maxForms/2 {
		t.Errorf("one more is answered with %d, %d are read", code, read.Load())
	}
	close(r.gathers)
	for range maxForms / 2 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one is answered with %d", code)
		}
	}
	go sends(time.Minute)
	if code := <-codes; code != http.StatusOK {
		t.Errorf("the next one is answered with %d", code)
	}
}

// This test is not parallel, because it measures the process.
func TestFiftyViewersTakeLittleMemory(t *testing.T) {
	const viewers, most = 50, 30 << 20
	r := &fake{gates: many(1000), versioned: true}
	server := httptest.NewServer(pages(t, r))
	defer server.Close()
	before := inUse()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	loaded := 0
	for i := range viewers {
		if code, _ := listen(ctx, t, server.URL); code != http.StatusOK {
			t.Fatal(code)
		}
		// The viewers request five different pages, and read the responses later.
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/?days=%d", server.URL, 10+i%5), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", "gzip")
		response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", response, err)
		}
		defer response.Body.Close() //nolint:errcheck // it is only read
		loaded++
	}
	grown := inUse() - before
	t.Logf("%d viewers take %d KiB", loaded, grown>>10)
	if grown > most {
		t.Errorf("%d viewers take %d MiB", loaded, grown>>20)
	}
}

// inUse returns the memory in use, in bytes.
func inUse() int {
	var stats runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
