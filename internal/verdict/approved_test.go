package verdict_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func condition(status metav1.ConditionStatus, reason string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.ApprovedCondition, Status: status, Reason: reason, Message: "before"}
}

func askedBy(who, why string) gateOption {
	return func(g *v1alpha1.Gate) {
		g.Status.Conditions[0].Reason = v1alpha1.CloseRequestedReason
		g.Status.Requests = []v1alpha1.AcceptedRequest{{
			Action: v1alpha1.RequestClose, RequestedAt: metav1.NewMicroTime(noon.Add(-time.Hour)), RequestedBy: who, Message: why,
		}}
	}
}

func TestConditionMessages(t *testing.T) {
	wasHeld := condition(metav1.ConditionFalse, v1alpha1.GateClosedReason)
	wasReleased := condition(metav1.ConditionTrue, v1alpha1.GateOpenedReason)
	wasResumed := condition(metav1.ConditionTrue, v1alpha1.ResumedReason)
	a := []string{"shop/a"}
	heldBy := func(names ...string) verdict.Observed {
		return verdict.Observed{State: target.Held, HeldBy: names, ReportedAt: noon.Add(-time.Minute)}
	}
	free := verdict.Observed{ReportedAt: noon.Add(-time.Minute)}
	for name, test := range map[string]struct {
		was      *metav1.Condition
		observed verdict.Observed
		gates    []verdict.Gate
		exempt   target.Exemption
		reason   string
		want     string
	}{
		"nothing governs it":      {nil, verdict.Observed{}, nil, 0, "", ""},
		"its gate is open":        {nil, verdict.Observed{}, governing(opened("a")), 0, "", ""},
		"closed by default":       {nil, heldBy("shop/a"), governing(closed("a")), 0, v1alpha1.GateClosedReason, "Held by gate 'shop/a': closed by default."},
		"outside its openPeriods": {nil, heldBy("shop/a"), governing(closed("a", next(time.Hour, v1alpha1.StateOpened), because(v1alpha1.OutsideOpenPeriodsReason, ""))), 0, v1alpha1.GateClosedReason, "Held by gate 'shop/a' until 2026-11-24T13:00:00Z: outside its open periods."},
		"by a close period":       {wasReleased, heldBy("shop/a"), governing(closed("a", because(v1alpha1.ClosePeriodReason, "christmas"))), 0, v1alpha1.GateClosedReason, "Held by gate 'shop/a': close period 'christmas'."},
		"by an exception":         {wasReleased, heldBy("shop/a"), governing(closed("a", because(v1alpha1.ExceptionAppliesReason, "audit"))), 0, v1alpha1.GateClosedReason, "Held by gate 'shop/a': exception 'audit'."},
		"on request":              {nil, heldBy("shop/a"), governing(closed("a", askedBy("alice", "incident 7"))), 0, v1alpha1.GateClosedReason, "Held by gate 'shop/a': closed on request of alice: incident 7."},
		"on a silent request":     {nil, heldBy("shop/a"), governing(closed("a", askedBy("", ""))), 0, v1alpha1.GateClosedReason, "Held by gate 'shop/a': closed on request."},
		"the gate is suspended":   {wasHeld, heldBy("shop/a"), governing(closed("a", suspended)), 0, v1alpha1.GateClosedReason, "before"},
		"only a suspended gate, released before": {wasReleased, heldBy("shop/a"), governing(closed("a", suspended)), 0,
			v1alpha1.GateClosedReason, "Held by gate 'shop/a': suspended (spec.suspend)."},
		"a suspended gate and a closed one, released before": {wasReleased, heldBy("shop/a", "shop/b"), governing(closed("a", suspended), closed("b")), 0,
			v1alpha1.GateClosedReason, "Held by gates 'shop/a' (suspended (spec.suspend)), 'shop/b' (closed by default)."},
		"a suspended gate and a closed one, held before": {wasHeld, heldBy("shop/a", "shop/b"), governing(closed("a", suspended), closed("b")), 0,
			v1alpha1.GateClosedReason, "Held by gates 'shop/a' (suspended (spec.suspend)), 'shop/b' (closed by default)."},
		"two gates": {nil, heldBy("shop/a", "shop/b"), governing(closed("b"), closed("a", next(time.Hour, v1alpha1.StateOpened), because(v1alpha1.OutsideOpenPeriodsReason, ""))), 0,
			v1alpha1.GateClosedReason, "Held by gates 'shop/a' until 2026-11-24T13:00:00Z (outside its open periods), 'shop/b' (closed by default)."},
		"five gates": {nil, heldBy("shop/a", "shop/b", "shop/c", "shop/d", "shop/e"), governing(closed("a"), closed("b"), closed("c"), closed("d"), closed("e")), 0,
			v1alpha1.GateClosedReason, "Held by gates 'shop/a', 'shop/b', 'shop/c', 'shop/d', 'shop/e'."},
		"the gate does not say yet why":     {wasReleased, heldBy("shop/a"), governing(opened("a", next(0, v1alpha1.StateClosed))), 0, v1alpha1.GateOpenedReason, "before"},
		"a gate that does not exist":        {nil, heldBy("shop/m"), []verdict.Gate{{Name: "shop/m", Effect: verdict.Missing}}, 0, v1alpha1.GateNotFoundReason, "Held because gate 'shop/m' does not exist. Create it, or remove it from the annotation gating.toolkit.fluxcd.io/gates."},
		"an annotation that cannot be read": {nil, heldBy("shop/*"), []verdict.Gate{{Name: "shop/*", Effect: verdict.Missing}}, 0, v1alpha1.GateNotFoundReason, "Held because the annotation gating.toolkit.fluxcd.io/gates cannot be read. It must be a list of at most 32 gates, each as name or namespace/name."},
		"a gate of another namespace":       {nil, heldBy("infra/d"), []verdict.Gate{{Name: "infra/d", Effect: verdict.Denied}}, 0, v1alpha1.AccessDeniedReason, "Held because gate 'infra/d' is in another namespace. That requires a controller that watches that namespace and runs with --no-cross-namespace-refs=false. Otherwise, remove the gate from the annotation gating.toolkit.fluxcd.io/gates."},
		"a refusal says more than a closed gate": {nil, heldBy("shop/a", "shop/m"), append(governing(closed("a")), verdict.Gate{Name: "shop/m", Effect: verdict.Missing}), 0,
			v1alpha1.GateNotFoundReason, "Held because gate 'shop/m' does not exist. Create it, or remove it from the annotation gating.toolkit.fluxcd.io/gates."},

		"released":                     {wasHeld, free, governing(opened("b"), opened("a")), 0, v1alpha1.GateOpenedReason, "Released: gates 'shop/a', 'shop/b' are open."},
		"released by one gate":         {wasHeld, free, governing(opened("a")), 0, v1alpha1.GateOpenedReason, "Released: gate 'shop/a' is open."},
		"released, nothing governs it": {wasHeld, free, nil, 0, v1alpha1.GateOpenedReason, "Released: no gate governs it."},
		"the gate is about to decide":  {wasHeld, heldBy("shop/a"), governing(closed("a", edited)), 0, v1alpha1.GateClosedReason, "before"},
		"released at its deadline, the gate is suspended": {wasHeld, verdict.Observed{HeldBy: a}, governing(closed("a", suspended)), target.Imminent,
			v1alpha1.ExpiryImminentReason, "Not held, although gate 'shop/a' is closed."},
		"resumed, and then the gate is suspended":   {wasResumed, verdict.Observed{HeldBy: a}, governing(closed("a", suspended)), 0, v1alpha1.ResumedReason, "before"},
		"released, the gate governs something else": {wasHeld, free, []verdict.Gate{verdict.Leaving("shop/a", opened("a"), noon)}, 0, v1alpha1.GateOpenedReason, "Released: no gate governs it."},
		"released before":                           {wasReleased, free, governing(opened("a")), 0, v1alpha1.GateOpenedReason, "before"},
		"resumed and respected":                     {wasHeld, verdict.Observed{HeldBy: a, ReportedAt: free.ReportedAt}, governing(closed("a", respecting)), 0, v1alpha1.ResumedReason, "Resumed manually. Gate 'shop/a' permits that until it closes again."},
		"resumed, and then the gate opens":          {wasResumed, free, governing(opened("a")), 0, v1alpha1.GateOpenedReason, "Released: gate 'shop/a' is open."},
		"taken over":                                {wasHeld, verdict.Observed{State: target.SuspendedByOthers}, governing(closed("a")), 0, v1alpha1.ResumedReason, "Resumed and then suspended manually. Gates do not change it until it is resumed."},
		"suspended before":                          {nil, verdict.Observed{State: target.SuspendedByOthers}, governing(closed("a")), 0, "", ""},
		"suspended also by Git, and released":       {wasHeld, verdict.Observed{State: target.SuspendedByOthers}, governing(opened("a")), 0, v1alpha1.GateOpenedReason, "Released: gate 'shop/a' is open."},
		"suspended after it was taken over":         {wasResumed, verdict.Observed{State: target.SuspendedByOthers}, governing(opened("a")), 0, v1alpha1.ResumedReason, "before"},
		"about to expire":                           {nil, verdict.Observed{HeldBy: a}, governing(closed("a")), target.Imminent, v1alpha1.ExpiryImminentReason, "Not held, although gate 'shop/a' is closed."},
		"resumed, and about to expire":              {wasResumed, verdict.Observed{HeldBy: a}, governing(closed("a")), target.Imminent, v1alpha1.ResumedReason, "before"},
		"not issued yet":                            {nil, verdict.Observed{}, governing(closed("a")), target.NotReady, "", ""},
		"activated instead":                         {wasHeld, verdict.Observed{}, governing(closed("a")), target.Activates, "", ""},
		"exempt so far, and then the gate opens": {condition(metav1.ConditionTrue, v1alpha1.ExpiryImminentReason), free, governing(opened("a")), 0,
			v1alpha1.GateOpenedReason, "Released: gate 'shop/a' is open."},
	} {
		t.Run(name, func(t *testing.T) {
			plan := target.Plan{Exempt: test.exempt}
			v := verdict.Judge(test.observed, test.gates)
			step := verdict.Next(test.observed, v, plan)
			if step.Write {
				t.Fatalf("something is left to write: %+v", step)
			}
			got := verdict.Approved(test.was, v, step, plan, noon)
			switch {
			case got == nil && test.reason == "":
			case got == nil || got.Reason != test.reason || got.Message != test.want:
				t.Errorf("got  %+v\nwant %s: %s", got, test.reason, test.want)
			case (got.Status == metav1.ConditionFalse) != (step.Hold && got.Reason != v1alpha1.GateOpenedReason):
				t.Errorf("the status is %s", got.Status)
			}
		})
	}
}
