package fleet

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// until matches a time in a table, which differs each time.
var until = regexp.MustCompile(`\S+ \S+ \(in \w+\) *`)

// page is the page whose commands the tests run.
const page = "docs/guides/several-clusters.md"

func TestFleetPage(t *testing.T) {
	w := newWorld(t)
	git := harness.StartArtifactServer()
	t.Cleanup(git.Stop)
	w.bootstrap(git)
	for m, until := range map[*member]string{canary: "2087-01-03", other: "2087-01-04"} {
		if got := w.in[m].ReadGate("fleet").Spec.ClosePeriods[0].Until.Time().UTC().Format("2006-01-02"); got != until {
			t.Errorf("%s is frozen until %s, want %s", m.name, got, until)
		}
		got, err := m.Kubectl(t.Context(), "-n", namespace, "get", "alert", "gates", "-o=jsonpath={.spec.eventMetadata.cluster}")
		if err != nil || got != m.name {
			t.Errorf("the Alert of %s has %q: %v", m.name, got, err)
		}
		w.write("addresses/"+m.name, m.gating.Webhooks)
	}
	both := func(check func(*member)) {
		for _, m := range members {
			check(m)
		}
	}
	then := map[string]func(output){
		"gate preview": func(s output) { w.has(s, "flux-system/fleet   2087-01-03T00:00:00Z   2087-01-05T00:00:00Z   opened") },
		"each-cluster.sh freeze": func(s output) {
			w.has(s, "Done in all 2 clusters.")
			both(func(m *member) { w.closedBy(m, "admin"); w.held(m, true) })
		},
		"create secret":   func(s output) { w.has(s, "secret/fleet-webhook created") },
		"> receivers.txt": func(output) {},
		"each-webhook.sh": func(s output) {
			w.has(s, "Taken by all 2 clusters.")
			both(func(m *member) { w.closedBy(m, "GateReceiver flux-system/fleet") })
		},
		"each-cluster.sh list": func(s output) {
			if want := markdown.BlockOf(t, page, "text", "eu-1: fleet"); until.ReplaceAllString(s.out, "") != until.ReplaceAllString(want, "") {
				t.Errorf("got\n%s\nbut the page shows\n%s", s.out, want)
			}
		},
		"each-cluster.sh reset": func(s output) {
			w.has(s, "Done in all 1 clusters.")
			both(func(m *member) { w.opened(m); w.held(m, false) })
		},
	}
	for _, b := range markdown.BlocksOf(t, page, "sh") {
		text := strings.ReplaceAll(inTheFuture.Replace(b.Text), "https://gating.$cluster.example.com", "$(cat addresses/$cluster)")
		s := w.sh("token=$(cat token 2>/dev/null || true)\n" + text + "printf %s \"$token\" > token\n")
		if s.code != 0 {
			t.Fatalf("%s%+v", b.Text, s)
		}
		for words, check := range then {
			if strings.Contains(b.Text, words) {
				check(s)
				delete(then, words)
			}
		}
	}
	for words := range then {
		t.Errorf("the page has no block with %q", words)
	}
	w.metricsOfThePage()
}

// has expects that a command has printed some texts.
func (w *world) has(s output, texts ...string) {
	w.Helper()
	for _, text := range texts {
		if !strings.Contains(s.out+s.errOut, text) {
			w.Errorf("want %q in %s%s", text, s.out, s.errOut)
		}
	}
}

// metricsOfThePage expects that the controllers have the metrics in the queries of the page.
func (w *world) metricsOfThePage() {
	w.Helper()
	queried := 0
	for _, b := range markdown.BlocksOf(w, page, "promql") {
		for _, name := range regexp.MustCompile(`gating_[a-z_]+\{[^}]*`).FindAllString(b.Text, -1) {
			queried++
			for _, m := range members {
				if !strings.Contains(w.metrics(m), name) {
					w.Errorf("%s has no %s", m.name, name)
				}
			}
		}
	}
	if queried < 4 {
		w.Errorf("the page queries %d metrics", queried)
	}
}

// metrics returns the metrics of the controller of a cluster.
func (w *world) metrics(m *member) string {
	w.Helper()
	get := func(path string) (code int, body string) {
		response, err := http.Get("http://" + m.metrics + path) //nolint:noctx // the request ends with the test
		w.must(err)
		defer response.Body.Close() //nolint:errcheck // the body was read
		return response.StatusCode, string(must(io.ReadAll(response.Body)))
	}
	if code, _ := get("/debug/pprof/"); code != http.StatusNotFound {
		w.Errorf("profiles are served without --enable-pprof, with the code %d", code)
	}
	_, body := get("/metrics")
	return body
}
