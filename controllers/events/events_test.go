package events

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

const ourGroup = "gating.toolkit.fluxcd.io"

// start is the time of these tests.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// kustomizationKind is the kind of the targets of these tests.
var kustomizationKind = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// kustomization returns a Kustomization that has never been reconciled.
func kustomization(name string) *target.Object {
	obj := &target.Object{Unstructured: *view.NewTarget(kustomizationKind)}
	obj.SetNamespace("ns")
	obj.SetName(name)
	return obj
}

// recorder stores the last event as "type reason", and counts all events.
type recorder struct {
	event    string
	metadata map[string]string
	n        int
}

// Event implements record.EventRecorder.
func (r *recorder) Event(obj runtime.Object, kind, reason, message string) {
	r.AnnotatedEventf(obj, nil, kind, reason, "%s", message)
}

// Eventf implements record.EventRecorder.
func (r *recorder) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	r.AnnotatedEventf(obj, nil, kind, reason, format, args...)
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorder) AnnotatedEventf(_ runtime.Object, metadata map[string]string, kind, reason, _ string, _ ...any) {
	r.event, r.metadata = kind+" "+reason, metadata
	r.n++
}

func TestEventMetadataHasPrefixOfEachKind(t *testing.T) {
	said := Details{GateKey: "ns/production", StateKey: "closed", RequesterKey: ""}
	of := func(groups ...string) map[string]string {
		want := map[string]string{}
		for _, group := range append(groups, ourGroup) {
			want[group+"/gate"], want[group+"/state"] = "ns/production", "closed"
		}
		return want
	}
	equal(t, said.metadata(&v1alpha1.Gate{}), of())
	equal(t, said.metadata(&v1alpha1.GateException{}), of())

	seen := 0
	for _, adapter := range target.All() {
		kind := adapter.GroupKind()
		for path, revision := range revisions[kind.Kind] {
			seen++
			obj := view.NewTarget(kind.WithVersion("v1"))
			want := of(kind.Group)
			if path != "" {
				var value any = revision
				if kind == target.Certificate {
					value = int64(7)
				}
				if err := unstructured.SetNestedField(obj.Object, value, strings.Split(path, ".")...); err != nil {
					t.Fatal(err)
				}
				want[kind.Group+"/revision"], want[ourGroup+"/revision"] = revision, revision
			}
			target.Trim(obj, verdict.Us)
			equal(t, said.metadata(&target.Object{Unstructured: *obj}), want)
		}
		if len(revisions[kind.Kind]) == 0 {
			t.Errorf("where does a %s say which revision it is at?", kind.Kind)
		}
	}
	if seen < len(revisions) {
		t.Errorf("only %d tried", seen)
	}
}

// revisions has examples of revisions by kind and path of the field. The empty path is for an object without a revision.
var revisions = map[string]map[string]string{
	"GatedSource": {"status.pinned.revision": "main@sha1:4ab1", "": ""},
	"Kustomization": {
		"status.lastAppliedRevision": "main@sha1:4ab1", "status.lastAttemptedRevision": "main@sha1:4ab2", "": "",
	},
	"HelmRelease":           {"status.lastAttemptedRevision": "6.5.0", "": ""},
	"GitRepository":         {"status.artifact.revision": "main@sha1:4ab1", "": ""},
	"OCIRepository":         {"status.artifact.revision": "latest@sha256:4ab1"},
	"Bucket":                {"status.artifact.revision": "sha256:4ab1"},
	"HelmRepository":        {"status.artifact.revision": "sha256:4ab1"},
	"HelmChart":             {"status.artifact.revision": "6.5.0"},
	"ImageRepository":       {"status.lastScanResult.revision": "sha256:4ab1"},
	"ImagePolicy":           {"status.latestRef.tag": "6.5.0"},
	"ImageUpdateAutomation": {"status.lastPushCommit": "4ab1"},
	"Certificate":           {"status.revision": "7"},
}

func TestEventHasAppliedRevision(t *testing.T) {
	app := kustomization("apps")
	app.Object["status"] = map[string]any{"lastAppliedRevision": "main@sha1:1", "lastAttemptedRevision": "main@sha1:2"}
	target.Trim(&app.Unstructured, verdict.Us)
	if got := target.Revision(app); got != "main@sha1:1" {
		t.Errorf("got %q", got)
	}
	app.Object["status"] = "broken"
	if got := target.Revision(app); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestEventsNameRequesterOrRule(t *testing.T) {
	at := start.Add(123456789)
	for name, tc := range map[string]struct {
		decision gate.Decision
		want     Details
	}{
		"a request": {
			gate.Decision{State: "opened", Reason: "OpenRequested", Request: &ledger.Request{By: "alice", Reason: "hotfix"}},
			Details{"state": "opened", "reason": "OpenRequested", "requestedBy": "alice", "message": "hotfix"}},
		"a period":     {gate.Decision{State: "closed", Reason: "ClosePeriod", By: "freeze"}, Details{"state": "closed", "reason": "ClosePeriod", "period": "freeze"}},
		"an exception": {gate.Decision{State: "opened", Reason: "Exception", By: "fix"}, Details{"state": "opened", "reason": "Exception", "exception": "fix"}},
		"the default":  {gate.Decision{State: "closed", Reason: "Default"}, Details{"state": "closed", "reason": "Default"}},
	} {
		tc.want["gate"], tc.want["token"] = "ns/production", "2026-11-23T12:00:00.123456789Z"
		got := ForDecision("ns/production", tc.decision, at)
		maps.DeleteFunc(got, func(_, value string) bool { return value == "" })
		t.Run(name, func(t *testing.T) { equal(t, got, tc.want) })
	}
}

// saysOf returns a Gate with an effect on a target.
func saysOf(name string, stand verdict.Effect, resume v1alpha1.Mode) verdict.Gate {
	state, status, reason := v1alpha1.StateClosed, metav1.ConditionFalse, v1alpha1.DefaultReason
	if stand == verdict.Open {
		state, status, reason = v1alpha1.StateOpened, metav1.ConditionTrue, v1alpha1.OpenRequestedReason
	}
	obj := &v1alpha1.Gate{}
	obj.Namespace, obj.Name, _ = strings.Cut(name, "/")
	obj.Spec.Mode = resume
	obj.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: status, Reason: reason}}
	obj.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: state, Reason: reason}
	if stand == verdict.Missing {
		obj = nil
	}
	return verdict.Gate{Name: name, Effect: stand, Governs: true, Object: obj}
}

// Each line has the observed state of a target, its Gates, and the expected event, if any.
func TestTargetEventsOnHoldAndRelease(t *testing.T) {
	a, b := "ns/a", "ns/b"
	closed := []verdict.Gate{saysOf(a, verdict.Closed, "")}
	open := []verdict.Gate{saysOf(a, verdict.Open, "")}
	one := []verdict.Gate{saysOf(a, verdict.Open, ""), saysOf(b, verdict.Closed, "")}
	respecting := []verdict.Gate{saysOf(a, verdict.Closed, v1alpha1.ModeLenient)}
	leaving := []verdict.Gate{{Name: a, Effect: verdict.Open}}
	audited := saysOf(a, verdict.Closed, v1alpha1.ModeAudit)
	audited.Effect, audited.Governs, audited.Audits, audited.Would = verdict.Open, false, true, verdict.Closed
	isClosed, isOpen := Details{"gate": a, "state": "closed", "reason": "Default"}, Details{"gate": a, "state": "opened", "reason": "OpenRequested"}
	for name, tc := range map[string]struct {
		state  target.State
		heldBy []string
		gates  []verdict.Gate
		plan   target.Plan
		event  string
		about  Details
	}{
		"held":                             {target.Free, nil, closed, target.Plan{}, "Normal GateClosed", isClosed},
		"locked by the policy, taken over": {target.Locked, []string{a}, closed, target.Plan{}, "Normal GateClosed", isClosed},
		"held already":                     {target.Held, []string{a}, closed, target.Plan{}, "", nil},
		"held already, a second gate":      {target.Held, []string{b}, []verdict.Gate{closed[0], one[1]}, target.Plan{}, "", nil},
		"released":                         {target.Held, []string{a}, open, target.Plan{}, "Normal GateOpened", isOpen},
		"released, locked by the policy":   {target.Locked, []string{a}, open, target.Plan{}, "Normal GateOpened", isOpen},
		"released by one of two":           {target.Held, []string{a, b}, one, target.Plan{}, "", nil},
		"locked for two, one opens":        {target.Locked, []string{a, b}, one, target.Plan{}, "Normal GateClosed", Details{"gate": b, "state": "closed", "reason": "Default"}},
		"governed no more":                 {target.Held, []string{a}, leaving, target.Plan{}, "Normal GateOpened", Details{"gate": a}},
		"audited, held":                    {target.Held, []string{a}, []verdict.Gate{audited}, target.Plan{}, "Normal GateOpened", Details{"gate": a, "state": "closed", "reason": "Default"}},
		"held, and no gate says so":        {target.Held, nil, nil, target.Plan{}, "Normal GateOpened", Details{}},
		"open and free":                    {target.Free, nil, open, target.Plan{}, "", nil},
		"foreign":                          {target.SuspendedByOthers, nil, closed, target.Plan{}, "", nil},
		"foreign since it was held":        {target.SuspendedByOthers, []string{a}, open, target.Plan{}, "", nil},
		"resumed":                          {target.Free, []string{a}, closed, target.Plan{}, "Warning HeldAgain", isClosed},
		"resumed and respected":            {target.Free, []string{a}, respecting, target.Plan{}, "", nil},
		"resumed, then the gate opens":     {target.Free, []string{a}, open, target.Plan{}, "", nil},
		"a gate that does not exist":       {target.Free, nil, []verdict.Gate{saysOf(a, verdict.Missing, "")}, target.Plan{}, "Warning GateNotFound", Details{"gate": a, "reason": "GateNotFound"}},
		"an exempt certificate":            {target.Free, nil, closed, target.Plan{Exempt: target.Needless}, "", nil},
		"a certificate that is released":   {target.Held, []string{a}, closed, target.Plan{Exempt: target.Imminent}, "", nil},
		"exempt when the gate opens":       {target.Free, []string{a}, open, target.Plan{}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := &recorder{}
			observed := verdict.Observed{State: tc.state, HeldBy: tc.heldBy, ReportedAt: start}
			v := verdict.Judge(observed, tc.gates)
			step := verdict.Next(observed, v, tc.plan)
			if step.Write {
				(&Recorder{EventRecorder: recorded}).changed(&verdict.Ruling{Object: kustomization("apps"), Observed: observed, Verdict: v, Plan: tc.plan, Step: step, Now: start})
			}
			if tc.event == "" {
				equal(t, recorded.event, "")
				return
			}
			kind, reason, _ := strings.Cut(tc.event, " ")
			got := map[string]string{}
			for key, value := range recorded.metadata {
				if key, ok := strings.CutPrefix(key, "kustomize.toolkit.fluxcd.io/"); ok {
					got[key] = value
				}
			}
			equal(t, recorded.event, kind+" "+reason)
			if again := reason == v1alpha1.HeldAgainReason; (got["token"] == "2026-11-23T12:00:00Z") == again {
				t.Errorf("token %q", got["token"])
			}
			delete(got, "token")
			equal(t, Details(got), tc.about)
		})
	}
}

// A transition of many targets emits events on some of them, and again after the next transition or a change of the mode.
func TestTargetEventsAreBoundedPerTransition(t *testing.T) {
	g := saysOf("ns/a", verdict.Closed, v1alpha1.ModeAudit)
	g.Object.UID = "uid"
	for name, tc := range map[string]struct {
		audits bool
		emit   func(*Recorder, int)
	}{
		"held": {false, func(n *Recorder, i int) {
			r := &verdict.Ruling{Object: kustomization(fmt.Sprint("app-", i)), Now: start}
			r.Verdict.Holders, r.Step.Hold = []verdict.Gate{g}, true
			n.changed(r)
		}},
		"would be held": {true, func(n *Recorder, i int) { n.Audited(kustomization(fmt.Sprint("app-", i)), g, start) }},
	} {
		recorded := &recorder{}
		n := &Recorder{EventRecorder: recorded}
		expect := func(when string, want int) {
			t.Helper()
			for i := range MaxTargetEvents + 5 {
				tc.emit(n, i)
			}
			if recorded.n != want {
				t.Errorf("%s, %s: %d events, want %d", name, when, recorded.n, want)
			}
			recorded.n = 0
		}
		g.Object.Status.LastTransition.At, g.Object.Spec.Mode = metav1.NewTime(start), v1alpha1.ModeAudit
		expect("at first", MaxTargetEvents)
		expect("again", 0)
		g.Object.Status.LastTransition.At = metav1.NewTime(start.Add(time.Hour))
		expect("after the next transition", MaxTargetEvents)
		g.Object.Spec.Mode = v1alpha1.ModeEnforce
		expect("in another mode", MaxTargetEvents)
		n.Forget(g.Object.UID)
		expect("after a restart", MaxTargetEvents)
	}
}

// A target that would be held gets one event, even if it is suspended and resumed in between.
func TestAuditedTargetHasOneEvent(t *testing.T) {
	recorded := &recorder{}
	n, g := &Recorder{EventRecorder: recorded}, saysOf("ns/a", verdict.Closed, v1alpha1.ModeAudit)
	for range 2 {
		n.Audited(kustomization("apps"), g, start)
	}
	n.Audited(kustomization("other"), g, start)
	if recorded.n != 2 || recorded.event != "Normal WouldHold" {
		t.Errorf("%d events, the last is %s", recorded.n, recorded.event)
	}
}

// The metric of a Gate whose open requests require approvals starts at zero. Other Gates have none.
func TestEmergencyMetricStartsAtZero(t *testing.T) {
	for name, tc := range map[string]struct {
		approvals *v1alpha1.GateApprovals
		want      int
	}{
		"open requests": {&v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 2}}, 1},
		"exceptions":    {&v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}}, 0},
		"none":          {nil, 0},
	} {
		registry := prometheus.NewRegistry()
		MustMakeMetrics(registry).EmergencyOpenings(&v1alpha1.Gate{Spec: v1alpha1.GateSpec{Approvals: tc.approvals}}, nil)
		families, err := registry.Gather()
		n := 0
		for _, family := range families {
			if family.GetName() == "gating_gate_emergency_openings_total" {
				n = len(family.GetMetric())
			}
		}
		if err != nil || n != tc.want {
			t.Errorf("%s: %d series, want %d, error %v", name, n, tc.want, err)
		}
	}
}

func TestOverlayMetricFollowsStatus(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := MustMakeMetrics(registry)
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}}
	for _, step := range []struct {
		states []v1alpha1.State
		want   map[string]float64
	}{
		{[]v1alpha1.State{"opened", "opened", "closed", ""}, map[string]float64{"opened": 2, "closed": 1}},
		{[]v1alpha1.State{"closed"}, map[string]float64{"closed": 1}},
		{nil, map[string]float64{}},
	} {
		g.Status.Overlays = nil
		for _, state := range step.states {
			g.Status.Overlays = append(g.Status.Overlays, v1alpha1.Overlay{State: state})
		}
		m.Record(g)
		equal(t, overlayMetric(t, registry), step.want)
	}
	g.Status.Overlays = []v1alpha1.Overlay{{State: v1alpha1.StateOpened}}
	m.Record(g)
	m.Delete(client.ObjectKeyFromObject(g))
	equal(t, overlayMetric(t, registry), map[string]float64{})
}

func TestEndlessRequestMetricHasOldestRequest(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := MustMakeMetrics(registry)
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production"}}
	request := func(action v1alpha1.RequestAction, at int64, change func(*v1alpha1.AcceptedRequest)) v1alpha1.AcceptedRequest {
		r := v1alpha1.AcceptedRequest{Action: action, State: v1alpha1.RequestInForce, RequestedAt: metav1.NewMicroTime(time.Unix(at, 0))}
		change(&r)
		return r
	}
	later := metav1.NewMicroTime(time.Unix(100, 0))
	g.Status.Requests = []v1alpha1.AcceptedRequest{
		request("close", 1, func(r *v1alpha1.AcceptedRequest) { r.Until = &later }),
		request("close", 2, func(r *v1alpha1.AcceptedRequest) { r.EndedAt = &later }),
		request("close", 3, func(r *v1alpha1.AcceptedRequest) { r.State = v1alpha1.RequestPlanned }),
		request("close", 6, func(*v1alpha1.AcceptedRequest) {}),
		request("close", 5, func(*v1alpha1.AcceptedRequest) {}),
		request("open", 4, func(*v1alpha1.AcceptedRequest) {}),
	}
	const name, label = "gating_gate_endless_request_timestamp_seconds", "action"
	m.Record(g)
	equal(t, gauges(t, registry, name, label), map[string]float64{"close": 5, "open": 4})
	g.Status.Requests = g.Status.Requests[:3]
	m.Record(g)
	equal(t, gauges(t, registry, name, label), map[string]float64{})
}

// overlayMetric returns the values of the metric of overlays by state.
func overlayMetric(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	return gauges(t, registry, "gating_gate_overlays", "state")
}

// gauges returns the values of a metric by one of its labels.
func gauges(t *testing.T, registry *prometheus.Registry, name, key string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == name && label.GetName() == key {
					values[label.GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
	}
	return values
}
