package controllers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// notificationDocs returns docs/guides/notifications.md, or another page beside it.
func notificationDocs(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "guides", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// alertInTheDocs returns a function that reports whether an Alert in docs/guides/notifications.md forwards a message.
func alertInTheDocs(t *testing.T, name string) func(message string) bool {
	t.Helper()
	found := regexp.MustCompile("(?s)\n( *)kind: Alert\n( *metadata:\n *name: " + name + "\n.*?)```").FindStringSubmatch(notificationDocs(t, "notifications.md"))
	if found == nil {
		t.Fatal("it is not there")
	}
	alert := struct {
		Spec struct {
			EventSources  []struct{ Kind, Name string } `json:"eventSources"`
			InclusionList []string                      `json:"inclusionList"`
		} `json:"spec"`
	}{}
	indented := "\n" + strings.TrimRight(found[2], " ")
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(indented, "\n"+found[1], "\n")), &alert); err != nil {
		t.Fatal(err)
	}
	if len(alert.Spec.EventSources) != 1 || alert.Spec.EventSources[0].Kind != "Kustomization" {
		t.Fatalf("%+v", alert)
	}
	return func(message string) bool {
		return slices.ContainsFunc(alert.Spec.InclusionList, func(expr string) bool { return regexp.MustCompile(expr).MatchString(message) })
	}
}

func TestDocumentedAlertForwardsOnlyOurEvents(t *testing.T) {
	passes, inTime := alertInTheDocs(t, "gates"), alertInTheDocs(t, "gates-in-time")
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	other := w.NewKustomization("names-none", nil)
	w.name(other, "none")
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.missing(w.Namespace, "none")
	w.Resume(app)
	w.Reconcile(g)
	w.Open(g, start)
	w.Reconcile(g)
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, start.Format("2006-01-02T15:04:05Z07:00"))
	w.Reconcile(g)
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "soon")
	w.Reconcile(g)
	ours := w.Events.Take("Kustomization/")
	reasons := map[string]bool{}
	for _, event := range ours {
		reason, message, _ := strings.Cut(event, ": ")
		reasons[reason[strings.LastIndex(reason, " ")+1:]] = true
		if !passes(message) || inTime(message) {
			t.Errorf("held back or told in time: %q", message)
		}
	}
	for _, reason := range []string{"GateClosed", "GateNotFound", "HeldAgain", "RequestAccepted", "GateOpened", "RequestRefused"} {
		if !reasons[reason] {
			t.Errorf("no %s among %q", reason, ours)
		}
	}
	for _, message := range []string{
		verdict.Explain([]verdict.Gate{{Name: "ns/a"}, {Name: "ns/b"}}, start), verdict.Explain(nil, start), verdict.Verdict{}.Released(), verdict.Verdict{Open: []string{"ns/a", "ns/b"}}.Released(),
		verdict.Verdict{Audits: []verdict.Gate{{Name: "ns/a"}}}.Released(), verdict.ExplainAudit(verdict.Gate{Name: "ns/a"}, start),
		"Stops the release of gate 'ns/a': no path", refusalOf("ns/a", verdict.Denied), refusalOf("ns/"+target.NoGate, verdict.Missing),
	} {
		if !passes(message) {
			t.Errorf("held back: %q", message)
		}
	}
	for _, message := range []string{ // of kustomize-controller
		"Reconciliation finished in 1.2s, next run in 10m0s", "Applied revision: main@sha1:4ab1", "Source artifact not found, retrying in 30s",
		"Dependencies do not meet ready condition, retrying in 30s", "Deployment/apps/web configured", "Health check passed in 1.1s",
	} {
		if passes(message) || inTime(message) {
			t.Errorf("let through: %q", message)
		}
	}
	for _, message := range inTimeInTheDocs(t) {
		if !passes(message) || !inTime(message) {
			t.Errorf("held back: %q", message)
		}
	}
}

// inTimeInTheDocs returns the messages in docs/guides/notifications.md that announce a change or withdraw an announcement.
func inTimeInTheDocs(t *testing.T) []string {
	t.Helper()
	return regexp.MustCompile("(?m)Gate 'flux-system/releases' [^`\n]*").FindAllString(notificationDocs(t, "notifications.md"), -1)
}

func refusalOf(gate string, stand verdict.Effect) string {
	_, message := verdict.Refusal([]verdict.Gate{{Name: gate, Effect: stand}})
	return message
}

func TestDocsListEachMetadataKey(t *testing.T) {
	_, table, _ := strings.Cut(notificationDocs(t, "notification-messages.md"), "| key | meaning |")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(documented)
	keys := []string{events.GateKey, events.StateKey, events.ReasonKey, events.RequesterKey, events.ApproverKey, events.MessageKey, events.PeriodKey, events.ExceptionKey, events.ActionKey, events.AtKey, eventv1.MetaRevisionKey, eventv1.MetaTokenKey}
	slices.Sort(keys)
	equal(t, documented, keys)
}
