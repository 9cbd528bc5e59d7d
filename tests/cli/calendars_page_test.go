package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestCalendarPages(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t), t.TempDir()
	w.Must(os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	do := func(command string) {
		t.Helper()
		if got := w.in(folder, command); got.code != 0 {
			t.Fatalf("%s\n%+v", command, got)
		}
	}
	for _, b := range append(w.blocksOf("guides/holiday-calendar.md"), w.blocksOf("guides/fetch-a-calendar.md")...) {
		switch b.Language {
		case "yaml":
			w.writes(folder, b)
		case "sh":
			// The Role of the page must suffice. No controller runs Jobs in this test.
			create, wait, _ := strings.Cut(b.Text, "\nkubectl -n "+w.Namespace+" wait ")
			do(strings.Replace(create, "-k config/calendars", "--dry-run=server -k config/calendars", 1))
			if wait != "" {
				do("kubectl patch job first --subresource=status --type=merge -p '" + complete + "'")
				do("kubectl -n " + w.Namespace + " wait " + wait)
			}
		case "console":
			command, want, _ := strings.Cut(strings.TrimPrefix(b.Text, "$ "), "\n")
			got := w.in(folder, command)
			if narrow(got.errOut+got.out) != narrow(want) { // warnings come first
				t.Errorf("%s\nprints\n%s%s\nbut the page shows\n%s", command, got.out, got.errOut, want)
			}
		case "text":
		default:
			t.Errorf("no test runs the %s on the page: %s", b.Language, b.Text)
		}
	}
	w.closedFor("the controller may not read it: install config/calendars, or grant the controller a Role")
	do("kubectl apply -f role.yaml")
	w.Decided(w.ReadGate("office-days"))
	w.Opened("office-days", metav1.ConditionTrue)

	do("kubectl delete configmap holidays")
	w.closedFor("does not exist")
	w.fetches(folder)
	w.seesCalendars(folder)
}

// complete is the status of a completed Job.
const complete = `{"status":{"startTime":"2026-11-26T08:00:00Z","completionTime":"2026-11-26T08:00:01Z","succeeded":1,"conditions":[` +
	`{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-11-26T08:00:01Z"},{"type":"Complete","status":"True","lastTransitionTime":"2026-11-26T08:00:01Z"}]}}`

// seesCalendars reads a Gate with all permissions, and as a user who may not read its calendar.
func (w *world) seesCalendars(folder string) {
	w.Helper()
	if got := w.gate("preview", "office-days", "--from", "2026-12-25T00:00:00Z", "--until", "2026-12-25T12:00:00Z"); !strings.Contains(got.out, "holidays (Christmas)") || !strings.HasSuffix(got.errOut, "/holidays, key no.ics: 1 of 2 events does not count: 1 TRANSPARENT\n") {
		w.Errorf("preview: %+v", got)
	}
	if got := w.gate("status", "office-days"); !strings.Contains(got.out, "close period holidays (Christmas)") || got.errOut != "" {
		w.Errorf("status: %+v", got)
	}
	change := "sed s/20261225/20261224/ clusters/production/no.ics > no.ics && mv no.ics clusters/production && kubectl gate diff -f clusters/production --from 2026-12-20T00:00:00Z"
	got := w.in(folder, change)
	if got.code != 1 || !strings.Contains(got.out, "close period holidays (Christmas Day), was outside close periods") ||
		!strings.Contains(got.out, "outside close periods, was close period holidays (Christmas)") {
		w.Errorf("diff: %+v", got)
	}
	if got := w.in(folder, "kubectl create role sees --verb=get,list --resource=gates.gating.toolkit.fluxcd.io,gateexceptions.gating.toolkit.fluxcd.io,kustomizations.kustomize.toolkit.fluxcd.io"+
		" && kubectl create rolebinding sees --role=sees --user=ivan"); got.code != 0 {
		w.Fatalf("%+v", got)
	}
	ivan, denied := w.as("ivan"), `you may not get configmap holidays in namespace "`+w.Namespace+`"`
	got = ivan.gate("preview", "office-days", "--from", "2026-12-20T00:00:00Z", "--until", "2026-12-21T00:00:00Z")
	if !strings.Contains(got.out, "closed   ClosePeriod   holidays") || !strings.Contains(got.errOut, denied) || !strings.Contains(got.errOut, "the preview treats it as closed") {
		w.Errorf("preview: %+v", got)
	}
	if got := ivan.gate("status", "office-days"); !strings.Contains(got.out, "close period holidays") || !strings.Contains(got.errOut, denied) {
		w.Errorf("status: %+v", got)
	}
}

// closedFor waits until the Gate is closed because its calendar cannot be read.
func (w *world) closedFor(cause string) {
	w.Helper()
	g := w.Opened("office-days", metav1.ConditionFalse)
	want := "Gate closed by close period 'holidays', whose calendar cannot be read: ConfigMap " + w.Namespace + "/holidays, key no.ics: " + cause
	if got := g.Status.Conditions; !strings.HasPrefix(messageOf(got), want) {
		w.Errorf("got  %q\nwant %q", messageOf(got), want)
	}
}

func messageOf(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == "Opened" {
			return c.Message
		}
	}
	return ""
}

// fetches runs the script of the CronJob as its service account, before the first copy exists.
func (w *world) fetches(folder string) {
	w.Helper()
	good, err := os.ReadFile(filepath.Join(folder, "clusters", "production", "no.ics"))
	w.Must(err)
	var served atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if *served.Load() == "" {
			http.Error(rw, "BEGIN:VEVENT", http.StatusInternalServerError)
			return
		}
		_, _ = rw.Write([]byte(*served.Load()))
	}))
	w.Cleanup(server.Close)
	script := w.in(folder, "kubectl get configmap fetch-calendar -o 'jsonpath={.data.fetch\\.sh}'")
	w.Must(os.WriteFile(filepath.Join(folder, "fetch.sh"), []byte(script.out), 0o600))
	job := w.as("system:serviceaccount:"+w.Namespace+":fetch-calendar", "system:serviceaccounts", "system:authenticated")
	fetch := func() output { return job.in(folder, "URL="+server.URL+" sh fetch.sh") }
	kept := func() string {
		return w.in(folder, "kubectl get configmap holidays -o 'jsonpath={.data.no\\.ics}'").out
	}

	text := string(good)
	served.Store(&text)
	if got := fetch(); got.code != 0 || kept() != text {
		w.Fatalf("%+v\n%s", got, kept())
	}
	w.Opened("office-days", metav1.ConditionTrue)
	newer := strings.Replace(text, "Christmas Day", "Christmas", 1)
	for what, bad := range map[string]string{
		"only an error":                    "",
		"a login page":                     "<html>",
		"a broken calendar":                strings.Replace(text, "20261225", "tomorrow", 1),
		"an empty calendar":                "BEGIN:VCALENDAR\nEND:VCALENDAR\n",
		"a rule that repeats every second": strings.Replace(text, "YEARLY", "SECONDLY", 1),
		"half of a calendar":               text[:len(text)/2],
		"more than the maximum size":       text + strings.Repeat(" \n", 1<<20),
	} {
		served.Store(&bad)
		if got := fetch(); got.code == 0 || got.errOut == "" || kept() != text {
			w.Errorf("%s: %+v\n%s", what, got, kept())
		}
	}
	served.Store(&newer)
	if got := fetch(); got.code != 0 || kept() != newer {
		w.Errorf("%+v\n%s", got, kept())
	}
}
