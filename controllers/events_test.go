package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

const (
	ourGroup = "gating.toolkit.fluxcd.io"
	ksGroup  = "kustomize.toolkit.fluxcd.io"
)

func TestTheMetadataOfAnEventHasThePrefixOfEachKind(t *testing.T) {
	said := events.Details{events.GateKey: "ns/production", events.StateKey: "closed", events.RequesterKey: ""}
	of := func(groups ...string) map[string]string {
		want := map[string]string{}
		for _, group := range append(groups, ourGroup) {
			want[group+"/gate"], want[group+"/state"] = "ns/production", "closed"
		}
		return want
	}
	equal(t, said.Metadata(&v1alpha1.Gate{}), of())
	equal(t, said.Metadata(&v1alpha1.GateException{}), of())

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
			equal(t, said.Metadata(&target.Object{Unstructured: *obj}), want)
		}
		if len(revisions[kind.Kind]) == 0 {
			t.Errorf("where does a %s say which revision it is at?", kind.Kind)
		}
	}
	if seen < len(revisions) {
		t.Errorf("only %d tried", seen)
	}
}

// revisions are where each kind says which revision it is at, and an example. An
// empty path is for an object that is at none.
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

func TestTheRevisionIsTheAppliedOneEvenIfAnotherWasTried(t *testing.T) {
	app := inGit("ns", "apps", nil)
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

func TestTheNewsSayWhoOrWhatDecided(t *testing.T) {
	at := start.Add(123456789)
	for name, tc := range map[string]struct {
		decision gate.Decision
		want     events.Details
	}{
		"a request": {
			gate.Decision{State: "opened", Reason: "OpenRequested", Request: &ledger.Request{By: "alice", Reason: "hotfix"}},
			events.Details{"state": "opened", "reason": "OpenRequested", "requestedBy": "alice", "message": "hotfix"}},
		"a period":     {gate.Decision{State: "closed", Reason: "ClosePeriod", By: "freeze"}, events.Details{"state": "closed", "reason": "ClosePeriod", "period": "freeze"}},
		"an exception": {gate.Decision{State: "opened", Reason: "Exception", By: "fix"}, events.Details{"state": "opened", "reason": "Exception", "exception": "fix"}},
		"the default":  {gate.Decision{State: "closed", Reason: "Default"}, events.Details{"state": "closed", "reason": "Default"}},
	} {
		tc.want["gate"], tc.want["token"] = "ns/production", "2026-11-23T12:00:00.123456789Z"
		got := events.ForDecision("ns/production", tc.decision, at)
		maps.DeleteFunc(got, func(_, value string) bool { return value == "" })
		t.Run(name, func(t *testing.T) { equal(t, got, tc.want) })
	}
}

// saysOf returns a Gate as a target sees it.
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

// Each line is what is found of a target and what Gates say, and the event that comes of it, if any.
func TestATargetIsToldOnceWhenItIsHeldAndOnceWhenItIsReleased(t *testing.T) {
	a, b := "ns/a", "ns/b"
	closed := []verdict.Gate{saysOf(a, verdict.Closed, "")}
	open := []verdict.Gate{saysOf(a, verdict.Open, "")}
	one := []verdict.Gate{saysOf(a, verdict.Open, ""), saysOf(b, verdict.Closed, "")}
	respecting := []verdict.Gate{saysOf(a, verdict.Closed, v1alpha1.ModeLenient)}
	leaving := []verdict.Gate{{Name: a, Effect: verdict.Open}}
	isClosed, isOpen := events.Details{"gate": a, "state": "closed", "reason": "Default"}, events.Details{"gate": a, "state": "opened", "reason": "OpenRequested"}
	for name, tc := range map[string]struct {
		state  target.State
		heldBy []string
		gates  []verdict.Gate
		plan   target.Plan
		event  string
		about  events.Details
	}{
		"held":                             {target.Free, nil, closed, target.Plan{}, "Normal GateClosed", isClosed},
		"locked by the policy, taken over": {target.Locked, []string{a}, closed, target.Plan{}, "Normal GateClosed", isClosed},
		"held already":                     {target.Held, []string{a}, closed, target.Plan{}, "", nil},
		"held already, a second gate":      {target.Held, []string{b}, []verdict.Gate{closed[0], one[1]}, target.Plan{}, "", nil},
		"released":                         {target.Held, []string{a}, open, target.Plan{}, "Normal GateOpened", isOpen},
		"released, locked by the policy":   {target.Locked, []string{a}, open, target.Plan{}, "Normal GateOpened", isOpen},
		"released by one of two":           {target.Held, []string{a, b}, one, target.Plan{}, "", nil},
		"locked for two, one opens":        {target.Locked, []string{a, b}, one, target.Plan{}, "Normal GateClosed", events.Details{"gate": b, "state": "closed", "reason": "Default"}},
		"governed no more":                 {target.Held, []string{a}, leaving, target.Plan{}, "Normal GateOpened", events.Details{"gate": a}},
		"held, and no gate says so":        {target.Held, nil, nil, target.Plan{}, "Normal GateOpened", events.Details{}},
		"open and free":                    {target.Free, nil, open, target.Plan{}, "", nil},
		"foreign":                          {target.SuspendedByOthers, nil, closed, target.Plan{}, "", nil},
		"foreign since it was held":        {target.SuspendedByOthers, []string{a}, open, target.Plan{}, "", nil},
		"resumed":                          {target.Free, []string{a}, closed, target.Plan{}, "Warning HeldAgain", isClosed},
		"resumed and respected":            {target.Free, []string{a}, respecting, target.Plan{}, "", nil},
		"resumed, then the gate opens":     {target.Free, []string{a}, open, target.Plan{}, "", nil},
		"a gate that does not exist":       {target.Free, nil, []verdict.Gate{saysOf(a, verdict.Missing, "")}, target.Plan{}, "Warning GateNotFound", events.Details{"gate": a, "reason": "GateNotFound"}},
		"an exempt certificate":            {target.Free, nil, closed, target.Plan{Exempt: target.Needless}, "", nil},
		"a certificate that is let go":     {target.Held, []string{a}, closed, target.Plan{Exempt: target.Imminent}, "", nil},
		"exempt when the gate opens":       {target.Free, []string{a}, open, target.Plan{}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := &recorder{}
			observed := verdict.Observed{State: tc.state, HeldBy: tc.heldBy, ReportedAt: start}
			v := verdict.Judge(observed, tc.gates)
			step := verdict.Next(observed, v, tc.plan)
			if step.Write {
				(&events.Recorder{EventRecorder: recorded}).Changed(&verdict.Ruling{Object: inGit("ns", "apps", nil), Observed: observed, Verdict: v, Plan: tc.plan, Step: step, Now: start})
			}
			if tc.event == "" {
				equal(t, recorded.events, []string(nil))
				return
			}
			kind, reason, _ := strings.Cut(tc.event, " ")
			got := recorded.takeMetadata(t, kind+" Kustomization/apps "+reason+": ", ksGroup)
			if again := reason == v1alpha1.HeldAgainReason; (got["token"] == "2026-11-23T12:00:00Z") == again {
				t.Errorf("token %q", got["token"])
			}
			delete(got, "token")
			equal(t, events.Details(got), tc.about)
		})
	}
}

func TestOfARequestAHundredHeldTargetsHearInOrder(t *testing.T) {
	w := newWorld(t)
	for i := range events.MaxTargetEvents + 1 {
		w.kustomization(fmt.Sprintf("app-%03d", i), nil)
	}
	g := w.ClosedGate("production", all())
	w.reconcile(g)
	w.events.take("")
	w.request(g, "open", start.Add(time.Hour), "alice", "planned")
	w.reconcile(g)
	want := make([]string, events.MaxTargetEvents)
	for i := range want {
		want[i] = fmt.Sprintf("Normal Kustomization/app-%03d RequestPlanned: Request for gate '%s': open requested at 2026-11-23T13:00:00Z by alice: planned", i, key(g))
	}
	equal(t, w.events.take("Kustomization"), want)
	w.reconcile(g)
	equal(t, w.events.take(""), []string(nil))
}

func TestOfARequestHearsWhatIsHeldAndNotWhatSomebodyResumed(t *testing.T) {
	w := newWorld(t)
	resumed := w.kustomization("resumed", nil)
	w.kustomization("held", nil)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{all()}})
	w.reconcile(g)
	w.resume(resumed)
	w.reconcile(g)
	w.events.take("")
	w.open(g, start)
	w.reconcile(g)
	if got := w.events.take("Kustomization"); len(got) != 2 || !strings.Contains(strings.Join(got, "\n"), "held RequestAccepted") ||
		!strings.Contains(strings.Join(got, "\n"), "held GateOpened") {
		t.Errorf("got %q", got)
	}
}

func TestWhatAClosedGateGovernsNoMoreIsNotToldThatItOpened(t *testing.T) {
	w := newWorld(t)
	w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	w.events.take("")
	w.Edit(g, func() { g.Spec.Targets = nil })
	w.reconcile(g)
	got := w.events.takeMetadata(t, "Normal Kustomization/apps GateOpened: ", ourGroup)
	equal(t, got, map[string]string{"gate": key(g), "token": "2026-11-23T12:00:00Z"})
}

// blindTargets do not know what a Gate holds.
type blindTargets struct{ view.TargetReader }

// HeldBy implements TargetReader.
func (blindTargets) HeldBy(context.Context, string) ([]*target.Object, error) { return nil, errBroken }

func TestARequestIsOnTheGateEvenIfNobodyKnowsWhatItHolds(t *testing.T) {
	w := newWorld(t)
	w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	w.events.take("")
	w.Targets = blindTargets{w.Targets}
	w.open(g, start)
	_, err := w.on().gates.Reconcile(w.Context(), requestFor(g))
	w.Must(err)
	if got := w.events.take("RequestAccepted"); len(got) != 1 || !strings.Contains(got[0], "Gate/production") {
		t.Errorf("got %q", got)
	}
}

func TestAPacedReleaseIsToldInEachTurn(t *testing.T) {
	w, g, _ := pacedWorld(t)
	w.in(time.Minute)
	w.request(g, "open", w.clock.Now(), "alice", "release")
	var told []string
	for i := range 4 {
		w.in(time.Minute + time.Duration(i)*30*time.Second)
		w.events.take("")
		w.reconcile(g)
		got := w.events.takeMetadata(t, " GateOpened: ", ksGroup)
		told = append(told, got["requestedBy"]+" "+got["message"]+" "+got["state"]+" "+got["gate"])
	}
	equal(t, told, slices.Repeat([]string{"alice release opened " + key(g)}, 4))
	w.reconcile(g)
	equal(t, w.events.take(""), []string(nil))
}

func TestACertificateIsToldAsOthersAre(t *testing.T) {
	w := newWorld(t)
	w.certificate("www", nil)
	g := w.ClosedGate("production", certificateRef("www"))
	w.reconcile(g)
	equal(t, w.events.takeMetadata(t, "Normal Certificate/www GateClosed: ", "cert-manager.io")["gate"], key(g))
	w.open(g, w.in(time.Minute))
	w.reconcile(g)
	equal(t, w.events.takeMetadata(t, "Normal Certificate/www GateOpened: ", ourGroup)["reason"], "OpenRequested")
}

func TestEventsOfAnExceptionNameItAndItsGate(t *testing.T) {
	w := newWorld(t)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	e := w.exception("fix", openingIt, 0, time.Hour)
	w.events.take("")
	w.reportOn(e)
	w.reportOn(e)
	got := w.events.takeMetadata(t, "Normal Gate/production ExceptionActivated: ", ourGroup)
	equal(t, got, map[string]string{"gate": key(g), "exception": "fix", "reason": "ExceptionActivated", "token": "2026-11-23T12:00:00Z"})
}

func TestARequestHasTheSameTokenHoweverOftenItIsLookedAt(t *testing.T) {
	g := &v1alpha1.Gate{}
	g.UID = "uid"
	request := ledger.Request{Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: "yesterday", Err: errors.New("no")}
	same := gatecontroller.RequestToken(g, request)
	equal(t, gatecontroller.RequestToken(g.DeepCopy(), request), same)
	tokens := map[string]bool{same: true}
	for _, other := range []ledger.Request{{Annotation: v1alpha1.CloseRequestedAtAnnotation, Value: "yesterday"}, {Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: "today"}} {
		tokens[gatecontroller.RequestToken(g, other)] = true
	}
	g.UID = "another"
	tokens[gatecontroller.RequestToken(g, request)] = true
	if len(tokens) != 4 {
		t.Errorf("tokens %v", tokens)
	}
}

func TestARefusedValueIsNotToldAtLength(t *testing.T) {
	w := newWorld(t)
	g := w.ClosedGate("production")
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, strings.Repeat("x", 100_000))
	w.reconcile(g)
	if got := w.events.take("RequestRefused"); len(got) != 1 || len(got[0]) > 300 {
		t.Errorf("%d events, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestOneEventForEachTransitionThroughTheCaches(t *testing.T) {
	const times = 20
	events := &recorder{}
	startManager(t, cluster, func(r *Gating) { r.EventRecorder = events })
	for name, targets := range map[string][]v1alpha1.TargetReference{"toggled": {named("toggled")}, "idle": nil} {
		w := newWorld(t)
		app := w.kustomization(name, nil)
		events.take("")
		g := w.Gate(name, v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: targets})
		for i := range times {
			state := []v1alpha1.State{v1alpha1.StateOpened, v1alpha1.StateClosed}[i%2]
			if i > 0 {
				w.Edit(g, func() { g.Spec.Default = state })
			}
			// A Gate is Reconciling until it has told what it is.
			w.soonStatus(g, fmt.Sprintf("change %d is done", i), func(g *v1alpha1.Gate) bool {
				return g.Status.ObservedGeneration == g.Generation && !conditions.IsReconciling(g) && w.suspended(app) == (len(targets) > 0 && state == v1alpha1.StateClosed)
			})
		}
		if len(targets) > 0 {
			w.soonHeld(app, g) // the event comes after the hold, and before the condition
		}
		told := map[string]int{}
		for _, event := range events.take("/" + name + " ") { // others are in the cluster
			reason, _, _ := strings.Cut(event, ":")
			told[reason]++
		}
		want := map[string]int{"Normal Gate/" + name + " Default": times}
		if len(targets) > 0 {
			want["Normal Kustomization/"+name+" GateClosed"], want["Normal Kustomization/"+name+" GateOpened"] = times/2, times/2-1
		}
		equal(t, told, want)
	}
}

// The patch of the status consists of two, and the other one may be made.
func TestARequestIsToldAlsoIfTheStatusWasNotWrittenAtFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.ClosedGate("production", all())
	w.reconcile(g)
	w.events.take("")
	w.open(g, start)
	w.writes.before = once("patch-status Gate", func() error { return errBroken })
	if _, err := w.try(g); err == nil {
		t.Error("the status was written")
	}
	w.reconcile(g)
	if events := w.events.take("Gate/production OpenRequested"); len(events) != 1 || !isOpened(g) {
		t.Errorf("%s, told: %q", opened(g), events)
	}
}
