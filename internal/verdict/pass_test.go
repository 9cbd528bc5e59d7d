package verdict_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// passing notes a pass on an object in our name. heldBy comes after it.
func passing(p verdict.Pass) edit {
	return func(obj *target.Object) {
		if p.State != "" {
			annotated(v1alpha1.PassAnnotation, p.Record())(obj)
		}
	}
}

// requesting has a pass requested at a time, of some Gates.
func requesting(at, gates string) edit {
	return func(obj *target.Object) {
		annotations := map[string]string{}
		maps.Copy(annotations, obj.GetAnnotations())
		annotations[v1alpha1.PassRequestedAtAnnotation], annotations[v1alpha1.PassGatesAnnotation] = at, gates
		obj.SetAnnotations(annotations)
	}
}

// hardly closes a Gate by a close period with override: Deny.
func hardly(g *v1alpha1.Gate) {
	period := v1alpha1.ClosePeriod{Override: v1alpha1.OverrideDeny}
	period.Name, period.From, period.Until = "freeze", v1alpha1.NewDateTime(noon.Add(-24*time.Hour)), v1alpha1.NewDateTime(noon.Add(24*time.Hour))
	g.Spec.Default, g.Spec.ClosePeriods = v1alpha1.StateClosed, []v1alpha1.ClosePeriod{period}
}

// byHand closes a Gate by a request of an hour ago.
func byHand(g *v1alpha1.Gate) { closedBy(g, noon.Add(-time.Hour)) }

// closedBy closes a Gate by a request of an instant.
func closedBy(g *v1alpha1.Gate, asked time.Time) {
	because(v1alpha1.CloseRequestedReason, "")(g)
	at := metav1.NewMicroTime(asked)
	g.Spec.Default = v1alpha1.StateOpened
	g.Status.Requests = []v1alpha1.AcceptedRequest{{State: v1alpha1.RequestInForce, Action: v1alpha1.RequestClose, RequestedAt: at, AcceptedAt: at, Source: v1alpha1.SourceAnnotation}}
}

func TestRefusedPasses(t *testing.T) {
	held := heldBy("shop/a", suspension)
	asking := func(at string, edits ...edit) *target.Object {
		return kustomization("apps", append([]edit{requesting(at, "shop/a")}, edits...)...)
	}
	calendar := func(g *v1alpha1.Gate) {
		hardly(g)
		p := &g.Spec.ClosePeriods[0]
		p.From, p.Until = nil, nil
		p.Calendar = &v1alpha1.CalendarReference{}
		p.Calendar.ConfigMapRef.Name, p.Calendar.ConfigMapRef.Key = "holidays", "ics"
	}
	now := "2026-11-24T12:00:00Z"
	for name, tc := range map[string]struct {
		obj   *target.Object
		gates []verdict.Gate
		def   target.Definition
		want  string
	}{
		"nothing, held by a closed gate":        {asking(now, held), governing(closed("a")), handles, ""},
		"nothing, held by what somebody closed": {asking(now, held), governing(closed("a", byHand)), handles, ""},
		"a value that is not a time":            {asking("now", held), governing(closed("a")), handles, "must be TIME[/DURATION]"},
		"a value that is ahead":                 {asking("2026-11-24T12:01:01Z", held), governing(closed("a")), handles, "is in the future"},
		"a value that is ahead, right after the gate closed": {
			asking("2026-11-24T12:00:30Z", held), governing(closed("a", since(-20*time.Second))), handles, "closed less than a minute ago"},
		"nothing, ahead of a gate that is closed for long": {
			asking("2026-11-24T12:00:30Z", held), governing(closed("a", since(-time.Minute))), handles, ""},
		"a request without a list of gates": {
			asking(now, held, requesting(now, "")), governing(closed("a")), handles, "gates is missing"},
		"a request that does not list a gate": {
			asking(now, heldBy("shop/a,shop/b", suspension)), governing(closed("a"), closed("b")), handles, "gate 'shop/b' holds it as well"},
		"a duration that is too long":  {asking("2026-11-24T12:00:00Z/61m", held), governing(closed("a")), handles, "must have a DURATION from 1s to 1h"},
		"a duration that is too short": {asking("2026-11-24T12:00:00Z/0s", held), governing(closed("a")), handles, "must have a DURATION from 1s to 1h"},
		"nothing, with a list for any gate": {
			asking(now, heldBy("shop/a,shop/b", suspension), requesting(now, "*")), governing(closed("a"), closed("b")), handles, ""},
		"a value from before the gate closed": {asking("2026-11-24T11:55:00Z", held), governing(closed("a", since(-time.Minute))), handles, "a gate has closed since"},
		"a kind that does not say what it has handled": {
			asking(now, held), governing(closed("a")), target.Definition{}, "does not have the last handled reconcile request"},
		"a target that flux suspends as well": {asking(now, held, alsoOwnedBy("flux")), governing(closed("a")), handles, "flux has suspended it as well"},
		"a target that nobody holds":          {asking(now), governing(opened("a")), handles, "no gate holds it"},
		"a gate that does not exist":          {asking(now, held), []verdict.Gate{{Name: "shop/a", Effect: verdict.Missing, Governs: true}}, handles, "does not exist"},
		"a gate that it may not reference":    {asking(now, held), []verdict.Gate{{Name: "shop/a", Effect: verdict.Denied, Governs: true}}, handles, "must not be referenced from its namespace"},
		"a gate of another shard":             {asking(now, held), []verdict.Gate{{Name: "shop/a", Effect: verdict.OtherShard}}, handles, "another controller"},
		"a suspended gate":                    {asking(now, held), governing(closed("a", suspended)), handles, "is suspended"},
		"a gate with an invalid spec":         {asking(now, held), governing(closed("a", because(v1alpha1.InvalidSpecReason, ""))), handles, "its spec is invalid"},
		"a gate that watches":                 {asking(now, held), governing(closed("a", because(v1alpha1.DependencyNotReadyReason, ""))), handles, "not ready"},
		"a hard freeze":                       {asking(now, held), governing(closed("a", hardly, because(v1alpha1.ClosePeriodReason, "freeze"))), handles, "override: Deny"},
		"a hard freeze below a request":       {asking(now, held), governing(closed("a", byHand, hardly)), handles, "override: Deny"},
		"a calendar of one below a request":   {asking(now, held), governing(closed("a", byHand, calendar)), handles, "may apply under the close request"},
	} {
		t.Run(name, func(t *testing.T) {
			step := rule(tc.obj, tc.gates, tc.def, noon).Step
			refused := step.Refused
			if step.Pass.State == verdict.PassRefused {
				refused = step.Pass.Message
			}
			if (step.Outcome == verdict.Passing) != (tc.want == "") || !strings.Contains(refused, tc.want) {
				t.Errorf("want %q, got %+v", tc.want, step)
			}
		})
	}
}

// since has a Gate closed some time after noon.
func since(after time.Duration) gateOption {
	return func(g *v1alpha1.Gate) { g.Status.LastTransition.At = metav1.NewTime(noon.Add(after)) }
}

// alsoOwnedBy makes another manager own the fields that hold an object.
func alsoOwnedBy(manager string) edit {
	return func(obj *target.Object) {
		obj.SetManagedFields(append(obj.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`),
		}))
	}
}

// A request opens at whole seconds, and a pass begins at any time.
func TestPassAtAnyFractionOfSecond(t *testing.T) {
	for _, ago := range []time.Duration{0, 100 * time.Millisecond, time.Second, time.Hour} {
		for name, change := range map[string]gateOption{"closed manually": func(*v1alpha1.Gate) {}, "and in a hard freeze": hardly} {
			now := noon.Add(320 * time.Millisecond)
			g := closed("a", func(g *v1alpha1.Gate) { closedBy(g, now.Add(-ago)) }, change)
			obj := kustomization("apps", requesting("2026-11-24T12:00:00.32Z", "*"), heldBy("shop/a", suspension))
			step := rule(obj, []verdict.Gate{verdict.Governing("shop/a", g, now)}, handles, now).Step
			if granted := step.Outcome == verdict.Passing; granted != (name == "closed manually") {
				t.Errorf("%s, %s ago: %+v", name, ago, step)
			}
		}
	}
}

func TestTargetWaitsForUndecidedGate(t *testing.T) {
	obj := kustomization("apps", requesting("2026-11-24T12:00:00Z", "*"), heldBy("shop/a", suspension))
	for name, gates := range map[string][]verdict.Gate{
		"edited": governing(closed("a", edited)), "due to close": governing(opened("a", next(0, v1alpha1.StateClosed))),
		"another that is edited": governing(closed("a"), opened("b", edited)),
	} {
		if step := rule(obj, gates, handles, noon).Step; step.Write || step.Refused != "" || !step.Hold {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// Flux was requested to reconcile before the pass began, or handles what Git says.
func TestReconciliationThatEndsPass(t *testing.T) {
	pass := before
	token := pass.Since.Format(time.RFC3339Nano)
	pass.Gates, pass.Was, pass.Is = "shop/a", target.Progress{"old", "v1", "7"}, target.Progress{"other", "v2", "8"}
	fresh := pass
	fresh.Is = fresh.Was
	for name, tc := range map[string]struct {
		pass                                verdict.Pass
		requested, handled, revision, ready string
		generation                          int64
		want                                string
	}{
		"the one that was requested":          {fresh, token, token, "v2", "True", 8, verdict.PassSucceeded},
		"one that failed":                     {fresh, token, token, "v2", "False", 8, verdict.PassFailed},
		"none that has not ended":             {fresh, token, token, "v2", "Unknown", 8, ""},
		"none of before":                      {fresh, token, "old", "v1", "True", 7, ""},
		"one whose request is restored":       {fresh, "old", "old", "v1", "True", 7, verdict.PassInterrupted},
		"one whose request is removed":        {fresh, "", "old", "v1", "True", 7, verdict.PassInterrupted},
		"one that somebody requested":         {fresh, "later", "later", "v2", "True", 8, verdict.PassSucceeded},
		"none that Flux has not begun":        {fresh, "later", "old", "v1", "True", 7, ""},
		"none that was replaced":              {fresh, "later", "other", "v2", "True", 8, ""},
		"the second one that was replaced":    {pass, "later", "another", "v2", "True", 8, verdict.PassSucceeded},
		"none that is the first":              {pass, "later", "other", "v2", "True", 8, ""},
		"one that begins a second revision":   {pass, token, "other", "v3", "Unknown", 8, verdict.PassInterrupted},
		"one that begins a second generation": {pass, token, "other", "v2", "Unknown", 9, verdict.PassInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			obj := kustomization("apps", passing(tc.pass), heldBy("shop/a", map[string]any{"suspend": false}), annotated(fluxmeta.ReconcileRequestAnnotation, tc.requested), reports(tc.handled, tc.revision, tc.ready, tc.generation))
			step := rule(obj, governing(closed("a")), handles, noon).Step
			if step.Hold != (tc.want != "") || step.Pass.Outcome != tc.want || (step.Outcome == verdict.Passing) != (tc.want == "") {
				t.Errorf("%+v", step)
			}
			if is := (target.Progress{tc.handled, tc.revision, strconv.FormatInt(tc.generation, 10)}); tc.want == "" && (step.Pass.Is != is || step.Write != (is != tc.pass.Is)) {
				t.Errorf("recorded %+v", step)
			}
		})
	}
}

// reports has Flux report something in the status.
func reports(handled, revision, ready string, generation int64) edit {
	return func(obj *target.Object) {
		obj.Object["status"] = map[string]any{"lastHandledReconcileAt": handled, "lastAttemptedRevision": revision, "observedGeneration": generation}
		obj.SetConditions([]metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(ready), Reason: "Test"}})
	}
}

// The attacker may only patch, and replaces each request for a reconciliation before Flux has reported the one before as handled.
func TestReconcileRequestDoesNotExtendPass(t *testing.T) {
	pass := verdict.Pass{
		State: verdict.PassInProgress, Gates: "shop/a", Value: "2026-11-24T12:00:00Z", Since: noon, Until: noon.Add(time.Hour),
		Was: target.Progress{"old", "v1", "7"}, Is: target.Progress{"old", "v1", "7"},
	}
	for n := 1; n < 400; n++ {
		obj := kustomization("apps", passing(pass), heldBy("shop/a", map[string]any{"suspend": false}),
			annotated(fluxmeta.ReconcileRequestAnnotation, fmt.Sprint("forged-", n+1)), reports(fmt.Sprint("forged-", n), "v2", "True", 8))
		step := rule(obj, governing(closed("a")), handles, noon.Add(time.Duration(n)*time.Second)).Step
		if step.Hold {
			if n > 2 {
				t.Errorf("%d reconciliations passed: %+v", n, step)
			}
			return
		}
		if step.Write {
			pass = step.Pass
		}
	}
	t.Error("the pass never ends")
}

// A pass that cannot be noted could happen twice.
func TestPassNeedsSpaceForRecord(t *testing.T) {
	used := len("big") + len(v1alpha1.HeldByAnnotation) + 2*len("shop/a") + len(v1alpha1.PassRequestedAtAnnotation) + len("2026-11-24T12:00:00Z") + len(v1alpha1.PassGatesAnnotation)
	full := annotated("big", strings.Repeat("x", 256<<10-used))
	asking := kustomization("apps", full, requesting("2026-11-24T12:00:00Z", "shop/a"), heldBy("shop/a", suspension))
	step := rule(asking, governing(closed("a")), handles, noon).Step
	if step.Outcome != verdict.Held || !step.Hold || step.Write || step.Refused == "" {
		t.Errorf("%+v", step)
	}
}
