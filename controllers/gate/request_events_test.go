package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// eventLog records events as "type name reason: message".
type eventLog []string

func (l *eventLog) Event(obj runtime.Object, kind, reason, message string) {
	l.AnnotatedEventf(obj, nil, kind, reason, "%s", message)
}

func (l *eventLog) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	l.AnnotatedEventf(obj, nil, kind, reason, format, args...)
}

func (l *eventLog) AnnotatedEventf(obj runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	name := obj.(metav1.Object).GetName() //nolint:forcetypeassert // events are on objects
	*l = append(*l, kind+" "+name+" "+reason+": "+fmt.Sprintf(format, args...))
}

// namedTargets has the targets with the name of a Gate, or an error.
type namedTargets struct {
	view.TargetReader
	all []*target.Object
	err error
}

func (n namedTargets) HeldBy(context.Context, string) ([]*target.Object, error) {
	return slices.Clone(n.all), n.err
}

// heldKustomization returns a Kustomization that has the name of a Gate, and that is suspended by it unless it was resumed.
func heldKustomization(name string, resumed bool) *target.Object {
	obj := newKustomization("shop", name)
	obj.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: "shop/production"})
	if !resumed {
		obj.Object["spec"] = map[string]any{"suspend": true}
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`),
		}})
	}
	return obj
}

var openRequest = ledger.Request{
	Action: v1alpha1.RequestOpen, Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: "2026-11-23T12:00:00Z",
	At: start, By: "alice", Reason: "hotfix 1234",
}

func refusedRequest(value string) ledger.Request {
	return ledger.Request{Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: value, Err: errors.New("must be TIME")}
}

// requestEvents returns the events about a request for a Gate on its targets, and the log.
func requestEvents(t *testing.T, request ledger.Request, targets namedTargets) (events eventLog, log string) {
	t.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}}
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { log += line }, funcr.Options{}))
	recorder{&events, targets}.requests(ctx, g, []ledger.Request{request})
	return events, log
}

func TestRequestHasEventsOnGateAndHeldTargets(t *testing.T) {
	const text = "open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234"
	onGate := "Normal production RequestAccepted: Gate " + text
	got, log := requestEvents(t, openRequest, namedTargets{all: []*target.Object{
		heldKustomization("b", false), heldKustomization("a", false), heldKustomization("resumed", true),
	}})
	onTarget := " RequestAccepted: Request for gate 'shop/production': " + text
	equal(t, []string(got), []string{onGate, "Normal a" + onTarget, "Normal b" + onTarget})
	for _, part := range []string{
		"Gate " + text, `"requestedAt"="2026-11-23T12:00:00Z"`, `"requestedBy"="alice"`, `"requestMessage"="hotfix 1234"`,
	} {
		if !strings.Contains(log, part) {
			t.Errorf("no %s in the log:\n%s", part, log)
		}
	}

	var many []*target.Object
	for i := range events.MaxTargetEvents + 5 {
		many = append(many, heldKustomization(fmt.Sprint(i), false))
	}
	if got, _ := requestEvents(t, openRequest, namedTargets{all: many}); len(got) != 1+events.MaxTargetEvents {
		t.Errorf("%d events", len(got))
	}
	// If the held targets are unknown, there is only an event on the Gate.
	got, _ = requestEvents(t, openRequest, namedTargets{err: errors.New("broken")})
	equal(t, []string(got), []string{onGate})
	// The value of a refused request is truncated.
	got, _ = requestEvents(t, refusedRequest(strings.Repeat("x", 100_000)), namedTargets{})
	const start = "Warning production RequestRefused: annotation open.gate.fluxcd.io/requestedAt: "
	if len(got) != 1 || !strings.HasPrefix(got[0], start) || len(got[0]) > 300 {
		t.Errorf("%d events, the first of %d bytes", len(got), len(got[0]))
	}
}

// documentedAlert returns a function that reports whether an Alert in docs/guides/notifications.md forwards a message on a Kustomization.
func documentedAlert(t *testing.T, docs, name string) func(message string) bool {
	t.Helper()
	found := regexp.MustCompile("(?s)\n( *)kind: Alert\n( *metadata:\n *name: " + name + "\n.*?)```").FindStringSubmatch(docs)
	if found == nil {
		t.Fatalf("there is no Alert %s", name)
	}
	alert := struct {
		Spec struct {
			EventSources  []struct{ Kind string } `json:"eventSources"`
			InclusionList []string                `json:"inclusionList"`
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
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "notifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs := string(page)
	forwards, announces := documentedAlert(t, docs, "gates"), documentedAlert(t, docs, "gates-in-time")
	expect := func(wantForwards, wantAnnounces bool, messages ...string) {
		t.Helper()
		for _, message := range messages {
			if forwards(message) != wantForwards || announces(message) != wantAnnounces {
				t.Errorf("forwarded is %t, announced %t: %q", forwards(message), announces(message), message)
			}
		}
	}
	refusal := func(gate string, effect verdict.Effect) string {
		_, message := verdict.Refusal([]verdict.Gate{{Name: gate, Effect: effect}})
		return message
	}
	closed, two := verdict.Gate{Name: "ns/a", Effect: verdict.Closed}, []verdict.Gate{{Name: "ns/a"}, {Name: "ns/b"}}
	expect(true, false,
		verdict.Explain([]verdict.Gate{closed}, start), verdict.Explain(two, start), verdict.Explain(nil, start),
		verdict.Verdict{}.Released(), verdict.Verdict{Open: []string{"ns/a"}}.Released(),
		verdict.Verdict{Open: []string{"ns/a", "ns/b"}}.Released(),
		verdict.Verdict{Audits: two[:1]}.Released(), verdict.ExplainAudit(two[0], start),
		fmt.Sprintf(msgStopsRelease, "ns/a", "no path"),
		refusal("ns/a", verdict.Denied), refusal("ns/a", verdict.Missing), refusal("ns/"+target.NoGate, verdict.Missing))
	for _, request := range []ledger.Request{openRequest, refusedRequest("soon")} {
		got, _ := requestEvents(t, request, namedTargets{all: []*target.Object{heldKustomization("apps", false)}})
		_, message, _ := strings.Cut(got[1], ": ")
		expect(true, false, message)
	}
	var again eventLog
	(&events.Recorder{EventRecorder: &again}).Notify(&summary.Result{Wrote: true, Ruling: verdict.Ruling{
		Object: newKustomization("ns", "apps"), Verdict: verdict.Verdict{Again: true, Holders: []verdict.Gate{closed}},
		Step: verdict.Step{Names: []string{"ns/a"}},
	}})
	_, message, _ := strings.Cut(strings.Join(again, ""), "HeldAgain: ")
	expect(true, false, message)
	expect(false, false, // of kustomize-controller
		"Reconciliation finished in 1.2s, next run in 10m0s", "Applied revision: main@sha1:4ab1", "Source artifact not found, retrying in 30s",
		"Dependencies do not meet ready condition, retrying in 30s", "Deployment/apps/web configured", "Health check passed in 1.1s")
	expect(true, true, regexp.MustCompile("(?m)Gate 'flux-system/releases' [^`\n]*").FindAllString(docs, -1)...)
}
