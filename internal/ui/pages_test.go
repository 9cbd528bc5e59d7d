package ui

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// hostile is a text that must be escaped, with a character that reverses the direction of writing.
const hostile = `<script>alert(1)</script>"'><b>` + "\u202e"

// allPages has an address of each page.
var allPages = []string{"/", "/gate/shop/web", "/gate/shop/web/month", "/target/Kustomization/shop/apps", "/what-if", "/nothing", "/?days=0"}

func reader() *fake {
	held := Target{State: "held", Waiting: explain.Waiting{Target: explain.Ref{Kind: "Kustomization", Namespace: "shop", Name: "apps"}, Reason: explain.NewRevision, Revision: "main@sha1:0123456789abcdef", Waits: "main@sha1:fedcba9876543210"}}
	return &fake{
		gates: []*v1alpha1.Gate{gateOf("web"), gateOf("db", func(g *v1alpha1.Gate) {
			g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(noon), State: v1alpha1.StateClosed, Reason: v1alpha1.DefaultReason}
		}), gateOf("new", func(g *v1alpha1.Gate) { g.Namespace, g.Status = "bank", v1alpha1.GateStatus{} })},
		exceptions: []*v1alpha1.GateException{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hotfix"}, Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: "web"}, Default: v1alpha1.StateOpened, ValidFrom: metav1.NewTime(noon), ValidUntil: metav1.NewTime(noon.AddDate(0, 0, 1)),
		}}},
		targets: []Target{held},
		why:     &explain.Explanation{Target: held.Target, State: "held", Summary: "shop/web holds it", Gates: []explain.Gate{{Gate: "shop/web", State: "closed", Holds: true}, {Gate: "shop/db"}, {Gate: "bank/new"}}, Waiting: &held.Waiting},
	}
}

func TestPagesShowTheirContent(t *testing.T) {
	t.Parallel()
	for path, texts := range map[string][]string{
		"/":                               {"1 open, 1 closed", "the controller has not decided yet", "open period day", "closed by default", `href="./gate/shop/web"`, "What the patterns mean", "Times in Europe/Oslo (CET)", "Time zone data: " + tz.Version() + "."},
		"/gate/shop/web":                  {"<title>web is opened", "until <time", "hotfix", "kubectl gate close web -n shop", "outside open periods", "main@sha1:fedcba98<", `href="./../../target/Kustomization/shop/apps"`, "timeZone: Europe/Oslo"},
		"/gate/shop/web/month":            {"web</a> in November 2026", "Thursday 26 November", "today", "<b>10:00</b>", "month=2026-10", "month=2026-12"},
		"/target/Kustomization/shop/apps": {"shop/web holds it", `<a href="./../../../gate/shop/web">shop/web</a>`, "holds it", "main@sha1:01234567."},
		"/what-if":                        {"<textarea", "Nothing is stored"},
	} {
		shows(t, reader(), path, texts...)
	}
}

func TestPagesCountOverlaidTargets(t *testing.T) {
	t.Parallel()
	r := reader()
	g := r.gates[0]
	g.Status.Overlays = []v1alpha1.Overlay{{Exception: "hotfix", State: v1alpha1.StateClosed}, {Exception: "hotfix", State: v1alpha1.StateOpened}}
	g.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 40, Overlaid: 2}}
	r.exceptions[0].Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}
	count := gate.Overlaid(g)
	if count == "" {
		t.Fatal("no target differs")
	}
	shows(t, r, "/", "</span> ("+count+")")
	shows(t, r, "/gate/shop/web", "</span> ("+count+")", "hotfix <small>only for Kustomization/apps</small>")
}

func TestFilterSelectsGates(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                             "bank/new shop/db shop/web",
		"text=WE":                      "shop/web",
		"text=by+default":              "shop/db",
		"state=opened":                 "shop/web",
		"state=unknown":                "bank/new",
		"namespace=bank":               "bank/new",
		"labels=team+in+(web,new)":     "bank/new shop/web",
		"labels=team=web&state=closed": "",
	} {
		_, page := get(t, reader(), "/?"+query)
		var found []string
		for _, m := range regexp.MustCompile(`href="\./gate/([^"?]+)"`).FindAllStringSubmatch(page, -1) {
			found = append(found, m[1])
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s shows %q, want %q", query, got, want)
		}
	}
	shows(t, reader(), "/?text=nothing", "No gate matches the filter.")
	shows(t, &fake{}, "/", "There are no gates yet")
}

func TestErrorPagesHaveCauseAndNextStep(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "gates"}, "", errors.New("no"))
	for _, c := range []struct {
		path string
		err  error
		code int
		says string
	}{
		{"/?days=0", nil, 400, "days=0: must be a number from 1 to 92"},
		{"/?days=93", nil, 400, "days=93"},
		{"/?from=yesterday", nil, 400, "must have the form 2026-11-26"},
		{"/?from=9999-01-01", nil, 400, "at most 400 days from now"},
		{"/?from=0000-01-01", nil, 400, "at most 400 days from now"},
		{"/?labels=((", nil, 400, "labels=(("},
		{"/gate/shop/web/month?month=13", nil, 400, "must have the form 2026-11"},
		{"/gate/shop/none", nil, 404, `there is no gate &#34;none&#34; in namespace &#34;shop&#34;, or you may not see it`},
		{"/gate/shop%2Fweb/x", nil, 404, `<a href="./../../">All gates`},
		{"/nothing", nil, 404, "there is no such page"},
		{"/static/", nil, 404, "there is no such page"},
		{"/templates/gate.html", nil, 404, "there is no such page"},
		{"/static/none.css", nil, 404, "not found"},
		{"/", forbidden, 403, "Ask an administrator"},
		{"/gate/shop/web", fmt.Errorf("more: %w", forbidden), 403, "Ask an administrator"},
		{"/target/a/b/c", Missing{Cause: errors.New("there is no c")}, 404, "there is no c"},
		{"/", errors.New("no cluster"), 502, "Try again"},
		{"/?text=" + strings.Repeat("%3Cb%3E", 9000), nil, 200, "No gate matches"},
	} {
		r := reader()
		r.err = c.err
		code, page := get(t, r, c.path)
		if code != c.code || !strings.Contains(page, c.says) {
			t.Errorf("%.40s answers %d, want %d with %q:\n%s", c.path, code, c.code, c.says, mainOf(page))
		}
	}
}

func TestPagesEscapeUntrustedText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	r := reader()
	r.gates[0].Spec.OpenPeriods[0].Name = hostile + long
	r.gates[0].Labels["team"] = hostile
	r.gates[0].Status.LastTransition.Period = hostile
	r.gates[0].Status.Conditions = []metav1.Condition{{Type: "Ready", Message: hostile + long}}
	r.gates[0].Status.History = []v1alpha1.HistoryEntry{{State: v1alpha1.StateOpened, At: metav1.NewTime(noon), Period: hostile, RequestedBy: hostile, Message: hostile + long}}
	r.exceptions[0].Name = hostile
	r.targets[0].Target.Name, r.targets[0].Revision, r.targets[0].State = hostile, hostile, hostile
	r.why.Summary, r.why.Target.Name = hostile, hostile
	r.why.Gates[0].Gate, r.why.Gates[0].RequestMessage, r.why.Gates[0].Period = hostile, hostile, hostile
	r.notes = []string{hostile}
	query := "?text=" + "%3Cscript%3Ealert(1)%3C/script%3E%22"
	for _, path := range allPages {
		_, page := get(t, r, path+strings.Replace(query, "?", map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")], 1))
		if strings.Contains(page, "<script>") || strings.Contains(page, "<b>\u202e") || strings.Contains(page, `"'>`) {
			t.Errorf("%s has it: %s", path, mainOf(page))
		}
		if i := strings.Index(page, "\u202e"); i >= 0 {
			t.Errorf("%s has a letter that turns others around, after %q", path, page[max(0, i-200):i])
		}
	}
}

func TestPagesForbidContentFromOtherOrigins(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script>|https?://`)
	address := regexp.MustCompile(`(?:href|src|action|data-changes)="([^"]*)"`)
	for _, path := range allPages {
		recorder := httptest.NewRecorder()
		pages(t, reader()).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		page, policy := recorder.Body.String(), recorder.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'; script-src 'self';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: %s", path, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Set-Cookie": ""} {
			if got := recorder.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if found := inline.FindString(page); found != "" {
			t.Errorf("%s has %q", path, found)
		}
		links := address.FindAllStringSubmatch(page, -1)
		for _, link := range links {
			if to := link[1]; !strings.HasPrefix(to, "./") && !strings.HasPrefix(to, "?") && !strings.HasPrefix(to, "#") {
				t.Errorf("%s links to %q, which is not relative", path, to)
			}
		}
		if len(links) < 5 {
			t.Errorf("%s has %d links", path, len(links))
		}
	}
}

func TestLinksWorkBelowAnyPrefix(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.StripPrefix("/a/secret", pages(t, reader())))
	defer server.Close()
	address := regexp.MustCompile(`(?:href|src)="([^"#]+)"`)
	seen, todo := map[string]bool{}, []string{server.URL + "/a/secret/?days=7"}
	for len(todo) > 0 && len(seen) < 300 {
		at := todo[0]
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d: %v", at, response.StatusCode, err)
		}
		if strings.Contains(at, "from=") || strings.Contains(at, "month=") {
			continue // these links never end
		}
		for _, link := range address.FindAllStringSubmatch(string(page), -1) {
			to, err := request.URL.Parse(strings.ReplaceAll(link[1], "&amp;", "&"))
			if err != nil || !strings.HasPrefix(to.Path, "/a/secret/") {
				t.Errorf("%s links to %s: %v", at, link[1], err)
				continue
			}
			todo = append(todo, to.String())
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d pages", len(seen))
	}
}

func TestTimesAreInRequestedZone(t *testing.T) {
	t.Parallel()
	r := reader()
	r.gates[0].Spec.TimeZone = "Asia/Tokyo"
	for path, texts := range map[string][]string{
		"/gate/shop/web":                     {"Thu 2026-11-26 16:00", "Europe/Oslo (CET)", "Zone of the gate"},
		"/gate/shop/web?zone=UTC":            {"Thu 2026-11-26 15:00", "Times in UTC"},
		"/gate/shop/web?zone=gate":           {"Fri 2026-11-27 00:00", "Asia/Tokyo (JST)", `href="./../../?zone=gate"`},
		"/gate/shop/web/month?zone=gate":     {"<b>10:00</b>", "Asia/Tokyo (JST)"},
		"/?zone=gate":                        {"Europe/Oslo (CET)"},
		"/gate/shop/web?zone=Nowhere&days=1": {"Europe/Oslo (CET)"},
	} {
		shows(t, r, path, texts...)
	}
}

// form returns a request that uploads manifests, as a browser sends it.
func form(t testing.TB, fields map[string]string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, text := range fields {
		part, err := w.CreateFormField(name)
		if name == "file" {
			part, err = w.CreateFormFile(name, "gates.yaml")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, text)
	}
	_ = w.Close()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/what-if", &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}

const manifestOfWeb = "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: %s}\nspec: {default: closed, timeZone: Europe/Oslo, openPeriods: [{name: night, start: \"20:00\", end: \"21:00\"}]}\n---\n"

func TestWhatIfShowsChanges(t *testing.T) {
	t.Parallel()
	web := fmt.Sprintf(manifestOfWeb, "web")
	var many strings.Builder
	for i := range maxTried + 1 {
		fmt.Fprintf(&many, manifestOfWeb, fmt.Sprintf("g%d", i))
	}
	for name, c := range map[string]struct {
		fields map[string]string
		code   int
		says   []string
	}{
		"pasted":                     {map[string]string{"manifests": web}, 200, []string{"shop/web <small>changed", "Today", "Then", "open period night", "name: night"}},
		"a file wins":                {map[string]string{"manifests": "no", "file": web}, 200, []string{"shop/web <small>changed"}},
		"an empty file":              {map[string]string{"manifests": web, "file": ""}, 200, []string{"shop/web <small>changed"}},
		"a new one":                  {map[string]string{"manifests": fmt.Sprintf(manifestOfWeb, "other")}, 200, []string{"shop/other <small>added"}},
		"some targets":               {map[string]string{"manifests": hotfixOfApps}, 200, []string{"shop/web <small>changed", "exception apps <small>only for Kustomization/apps"}},
		"nothing":                    {map[string]string{"manifests": "kind: Other\n"}, 200, []string{"there is no gate and no exception in the manifests"}},
		"invalid":                    {map[string]string{"manifests": strings.Replace(web, "20:00", "25:00", 1) + "{"}, 200, []string{"manifests: shop/web: spec.openPeriods[0]", "yaml: "}},
		"html":                       {map[string]string{"manifests": "<script>"}, 200, []string{"&lt;script&gt;"}},
		"too many":                   {map[string]string{"manifests": many.String()}, 200, []string{"the manifests name 201 gates"}},
		"too large":                  {map[string]string{"manifests": strings.Repeat("#", 3<<20)}, 413, []string{"larger than 1 MiB"}},
		"nearly too large":           {map[string]string{"file": web + strings.Repeat("#", 1<<20-len(web))}, 200, []string{"shop/web <small>changed"}},
		"an exception of no gate":    {map[string]string{"manifests": "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateException\nmetadata: {name: x}\nspec: {gateRef: {name: none}, timeZone: UTC, validFrom: \"2026-11-26T00:00:00Z\", validUntil: \"2026-11-27T00:00:00Z\", openPeriods: [{name: a, start: \"01:00\", end: \"02:00\"}]}\n"}, 200, []string{"is in none of the files, and not in the cluster", "No gate changes its state"}},
		"a bomb of references in it": {map[string]string{"manifests": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"}, 200, []string{"cannot be applied"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := httptest.NewRecorder()
			pages(t, reader()).ServeHTTP(recorder, form(t, c.fields))
			page := recorder.Body.String()
			if recorder.Code != c.code {
				t.Errorf("it answers %d, want %d", recorder.Code, c.code)
			}
			for _, text := range c.says {
				if !strings.Contains(page, text) {
					t.Errorf("no %q in %s", text, mainOf(page))
				}
			}
		})
	}
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/what-if", strings.NewReader("x"))
	if pages(t, reader()).ServeHTTP(recorder, request); recorder.Code != http.StatusBadRequest {
		t.Errorf("no form answers %d", recorder.Code)
	}
}

func TestFailingGateHasPage(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(noon)
	for name, c := range map[string]struct {
		change func(*v1alpha1.Gate)
		says   []string
	}{
		"suspended":     {func(g *v1alpha1.Gate) { g.Spec.Suspend = true }, []string{"suspended: does not change", "the gate keeps its state while it is suspended"}},
		"audit":         {func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }, []string{"audit: holds nothing"}},
		"deleted":       {func(g *v1alpha1.Gate) { g.DeletionTimestamp = &now }, []string{"is being deleted"}},
		"no status":     {func(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} }, []string{"the controller has not decided yet", "Not counted yet"}},
		"invalid":       {func(g *v1alpha1.Gate) { g.Spec.OpenPeriods[0].End = nil }, []string{"invalid spec", `fill="url(#closed-fault)"`}},
		"unknown zone":  {func(g *v1alpha1.Gate) { g.Spec.TimeZone = "Nowhere/Land" }, []string{"invalid spec"}},
		"always closed": {func(g *v1alpha1.Gate) { g.Spec.OpenPeriods = nil }, []string{"No change of state is known", "closed by default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &fake{gates: []*v1alpha1.Gate{gateOf("web", c.change)}}
			shows(t, r, "/gate/shop/web?zone=gate", c.says...)
			shows(t, r, "/gate/shop/web/month")
			shows(t, r, "/", "web")
		})
	}
}

func TestPageIsCompressedIfClientAcceptsIt(t *testing.T) {
	t.Parallel()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set("Accept-Encoding", "gzip, br")
	recorder := httptest.NewRecorder()
	pages(t, reader()).ServeHTTP(recorder, request)
	unpacks, err := gzip.NewReader(recorder.Body)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(unpacks)
	if _, plain := get(t, reader(), "/"); err != nil || string(page) != plain {
		t.Errorf("it is another page: %v", err)
	}
}

func TestFirstPageOfThousandGatesIsSmall(t *testing.T) {
	t.Parallel()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	recorder := httptest.NewRecorder()
	pages(t, &fake{gates: many(1000)}).ServeHTTP(recorder, request)
	if size := recorder.Body.Len(); recorder.Code != http.StatusOK || size > 300<<10 {
		t.Errorf("it answers %d with %d bytes", recorder.Code, size)
	}
}

func TestRenderingTimeoutIsReported(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	recorder := httptest.NewRecorder()
	pages(t, &fake{hangs: true}).ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if recorder.Code != http.StatusGatewayTimeout || !strings.Contains(recorder.Body.String(), "has not responded in time") {
		t.Errorf("it answers %d: %s", recorder.Code, recorder.Body)
	}
}

func TestConcurrentReadsAreLimitedAndReleased(t *testing.T) {
	t.Parallel()
	r := &fake{hangs: true, key: "viewer"}
	h := pages(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	codes := make(chan int)
	for i := range 50 {
		go func() {
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("/?days=%d", i+1), nil))
			codes <- recorder.Code
		}()
	}
	eventually(t, "some are read", func() bool { return r.asked.Load() == maxPages/2 }) // one viewer has half of the slots
	cancel()
	for range 50 {
		if code := <-codes; code != http.StatusGatewayTimeout {
			t.Errorf("one is answered with %d", code)
		}
	}
	if n := r.asked.Load(); n > 50 {
		t.Errorf("%d were read", n)
	}
}
