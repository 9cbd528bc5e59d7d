package explain_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
)

func TestExplainHasStateOfObject(t *testing.T) {
	respecting := func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeLenient }
	audit := func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }
	allowing := func(g *v1alpha1.Gate) { g.Spec.InitialReconciliation = v1alpha1.InitialAllow }
	young := set(noon.Add(-time.Minute).Format(time.RFC3339), "metadata", "creationTimestamp")
	const initially = "its initial reconciliation is allowed until its first success, at the latest until 2026-11-24T12:59:00Z"
	deleting := func(g *v1alpha1.Gate) { g.DeletionTimestamp = &g.Status.LastTransition.At }
	paced := func(g *v1alpha1.Gate) {
		g.Status.Release = &v1alpha1.ReleaseStatus{Total: 10, Released: 3, NextAt: &g.Status.Requests[0].RequestedAt}
	}
	for _, tc := range []struct {
		name    string
		obj     *unstructured.Unstructured
		known   explain.Cluster
		state   explain.State
		becomes explain.State
		// says is the complete text of the explanation.
		says string
	}{
		{
			"nothing governs it", kustomization(), in(closed("other", targets())), explain.Free, "",
			"No gate governs Kustomization shop/apps.",
		},
		{
			"a closed gate holds it", kustomization(heldBy("shop/production")), in(closed("production")), explain.Held, "",
			"Kustomization shop/apps is held by gate production.",
		},
		{
			"two closed gates hold it", kustomization(heldBy("shop/a,shop/b")), in(closed("b"), closed("a"), opened("c")), explain.Held, "",
			"Kustomization shop/apps is held by gates a, b.",
		},
		{
			"its gate is open", kustomization(), in(opened("production")), explain.Free, "",
			"Kustomization shop/apps is not held: gate production is open.",
		},
		{
			"its gate has just closed", kustomization(), in(closed("production")), explain.Free, explain.Held,
			"Kustomization shop/apps is not held yet, although gate production is closed. The controller is about to hold it. If it does not, it is not running.",
		},
		{
			"its gate allows its initial reconciliation", kustomization(young), in(closed("production", allowing)), explain.Exempt, "",
			"Kustomization shop/apps is not held, although gate production is closed: " + initially + ".",
		},
		{
			"its gate has just allowed its initial reconciliation", kustomization(young, heldBy("shop/production")), in(closed("production", allowing)), explain.Held, explain.Exempt,
			"Kustomization shop/apps is still held, although " + initially + ". No gate holds it any longer: the controller is about to release it. If it does not, it is not running.",
		},
		{
			"its gate has just opened", kustomization(heldBy("shop/production")), in(opened("production")), explain.Held, explain.Free,
			"Kustomization shop/apps is still held, although gate production is open. No gate holds it any longer: the controller is about to release it. If it does not, it is not running.",
		},
		{
			"its gate no longer governs it", kustomization(heldBy("shop/production")), in(closed("production", targets())), explain.Held, explain.Free,
			"Kustomization shop/apps is held for gates that no longer exist. No gate holds it any longer: the controller is about to release it. If it does not, it is not running.",
		},
		{
			"it waits for its turn", kustomization(heldBy("shop/production")), in(opened("production", requestedClose, because("Default", ""), paced)), explain.Held, explain.Free,
			"Kustomization shop/apps is still held, although gate production is open. It waits for a release slot: gate shop/production has released 3 of 10.",
		},
		{
			"a user has suspended it", kustomization(suspendedBy("flux")), in(opened("production")), explain.Suspended, "",
			"Kustomization shop/apps is suspended by flux. Gates do not change it.",
		},
		{
			"somebody has suspended it and its gate is closed", kustomization(suspendedBy("flux")), in(closed("production")), explain.Suspended, "",
			"Kustomization shop/apps is suspended by flux. Gates do not change it. If it is resumed now, it is held: gate production is closed.",
		},
		{
			"it is held and suspended", kustomization(heldBy("shop/production"), suspendedBy("kustomize-controller")), in(closed("production")), explain.Held, "",
			"Kustomization shop/apps is held by gate production. It is also suspended by kustomize-controller, and stays suspended when the gates open.",
		},
		{
			"somebody has resumed it and that is respected", kustomization(named("shop/production", ""), approved("True", v1alpha1.ResumedReason)), in(closed("production", respecting)), explain.Resumed, "",
			"Kustomization shop/apps was resumed manually. Gate production permits that until it closes again.",
		},
		{
			"the lock has put the hold back", kustomization(set(true, "spec", "suspend"), named("shop/production", "")), in(closed("production")), explain.Overridden, "",
			"Kustomization shop/apps is held by gate production. Another client has resumed it, and the lock has restored the hold.",
		},
		{
			"it names a gate that does not exist", kustomization(annotated(v1alpha1.GatesAnnotation, "qa"), heldBy("shop/qa")), in(), explain.Held, "",
			"Kustomization shop/apps is held by gate qa. Held because gate 'shop/qa' does not exist. Create it, or remove it from the annotation gating.toolkit.fluxcd.io/gates.",
		},
		{
			"it names a gate that is being deleted", kustomization(annotated(v1alpha1.GatesAnnotation, "qa"), heldBy("shop/qa")), in(closed("qa", deleting)), explain.Held, "",
			"Kustomization shop/apps is held by gate qa. Held because gate 'shop/qa' does not exist. Create it, or remove it from the annotation gating.toolkit.fluxcd.io/gates.",
		},
		{
			"it names a gate that it must not name", kustomization(annotated(v1alpha1.GatesAnnotation, "ops/qa"), heldBy("ops/qa"), approved("False", v1alpha1.AccessDeniedReason)), in(), explain.Held, "",
			"Kustomization shop/apps is held by gate ops/qa. Held because gate 'ops/qa' is in another namespace. That requires a controller that watches that namespace and runs with --no-cross-namespace-refs=false. " +
				"Otherwise, remove the gate from the annotation gating.toolkit.fluxcd.io/gates.",
		},
		{
			"its gate is suspended", kustomization(heldBy("shop/production")), in(closed("production", func(g *v1alpha1.Gate) { g.Spec.Suspend = true })), explain.Held, "",
			"Kustomization shop/apps is held by gate production. Gate shop/production has spec.suspend: it is not reconciled, and held objects stay held.",
		},
		{
			"its closed gate has mode Audit", kustomization(), in(closed("production", audit)), explain.Free, "",
			"Kustomization shop/apps is not held: gate production has mode Audit. Gate shop/production would hold it, but it has mode Audit.",
		},
		{
			"its open gate has mode Audit", kustomization(), in(opened("production", audit)), explain.Free, "",
			"Kustomization shop/apps is not held: gate production has mode Audit.",
		},
		{
			"another gate holds it, too", kustomization(heldBy("shop/b")), in(closed("a", audit), closed("b")), explain.Held, "",
			"Kustomization shop/apps is held by gate b. Gate shop/a would hold it, but it has mode Audit.",
		},
		{
			"somebody has suspended it, and a closed gate has mode Audit", kustomization(suspendedBy("flux")), in(closed("production", audit)), explain.Suspended, "",
			"Kustomization shop/apps is suspended by flux. Gates do not change it.",
		},
		{
			"its gate has just got mode Audit", kustomization(heldBy("shop/production")), in(closed("production", audit)), explain.Held, explain.Free,
			"Kustomization shop/apps is still held, although gate production has mode Audit. Gate shop/production would hold it, but it has mode Audit. " +
				"No gate holds it any longer: the controller is about to release it. If it does not, it is not running.",
		},
		{
			"the controller has not decided", kustomization(), in(closed("production", func(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} })), explain.Free, "",
			"Kustomization shop/apps is not held: the controller has not decided on gate production.",
		},
		{
			"a gate that the user may not see holds it", kustomization(heldBy("ops/qa")), explain.Cluster{Namespaces: []string{"shop"}, Now: noon}, explain.Held, "",
			"Kustomization shop/apps is held by gate ops/qa. You may not see gate ops/qa, so its state is unknown here.",
		},
		{
			"a gate of another namespace is known not to exist", kustomization(annotated(v1alpha1.GatesAnnotation, "ops/qa"), heldBy("ops/qa")),
			explain.Cluster{Namespaces: []string{"shop"}, Absent: []string{"ops/qa"}, Now: noon}, explain.Held, "",
			"Kustomization shop/apps is held by gate ops/qa. Held because gate 'ops/qa' does not exist. Create it, or remove it from the annotation gating.toolkit.fluxcd.io/gates.",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.obj.DeepCopy()
			e := explain.Explain(tc.obj, tc.known)
			if says := strings.Join(append([]string{e.Summary}, e.Notes...), " "); e.State != tc.state || e.Becomes != tc.becomes || says != tc.says {
				t.Errorf("it is %s, becomes %q\nsays %s\nwant %s, becomes %q\nsays %s", e.State, e.Becomes, says, tc.state, tc.becomes, tc.says)
			}
			if !reflect.DeepEqual(before, tc.obj) {
				t.Error("the object is changed")
			}
		})
	}
}

func TestRuleNamesEntryOfSpec(t *testing.T) {
	g := closed("production", targets(
		v1alpha1.TargetReference{Kind: "HelmRelease", Name: "*"},
		v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"tier": "web", "app": "shop"}},
		v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps", Namespace: "shop"},
		v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps", Namespace: "ops"},
	))
	obj := kustomization(annotated(v1alpha1.GatesAnnotation, "production"), labelled("tier", "web"), labelled("app", "shop"))
	want := []string{
		"spec.targets[1]: Kustomization * with app=shop,tier=web", "spec.targets[2]: Kustomization apps in shop",
		"annotation gating.toolkit.fluxcd.io/gates",
	}
	if got := explain.Explain(obj, in(g)).Gates[0].Rules; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGateMessageHasTimesAndRequester(t *testing.T) {
	g := closed("production", requestedClose, func(g *v1alpha1.Gate) {
		g.Status.NextTransition = &v1alpha1.Transition{At: g.Status.LastTransition.At, State: v1alpha1.StateOpened}
		g.Status.NextTransition.At.Time = noon.Add(3600e9)
	})
	got := explain.Explain(kustomization(heldBy("shop/production")), in(g)).Gates[0]
	if got.State != explain.Closed || !got.Holds || got.Reason != v1alpha1.CloseRequestedReason || got.RequestedBy != "alice" || got.RequestMessage != "incident 77" ||
		!got.Since.Time.Equal(noon.Add(-3600e9)) || !got.Until.Time.Equal(noon.Add(3600e9)) {
		t.Errorf("%+v", got)
	}
}

func TestGateDueToCloseCountsAsClosed(t *testing.T) {
	g := opened("production", func(g *v1alpha1.Gate) {
		g.Status.NextTransition = &v1alpha1.Transition{State: v1alpha1.StateClosed}
		g.Status.NextTransition.At.Time = noon
	})
	if e := explain.Explain(kustomization(), in(g)); e.Gates[0].State != explain.Closed || e.Becomes != explain.Held {
		t.Errorf("%+v", e)
	}
}

func TestGateOfOtherNamespaceGovernsUnlessDenied(t *testing.T) {
	across := targets(v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps", Namespace: "shop"})
	g := closed("production", across)
	g.Namespace = "ops"
	if e := explain.Explain(kustomization(), in(g)); len(e.Gates) != 1 {
		t.Errorf("allowed: %+v", e.Gates)
	}
	g.Status.Targets = &v1alpha1.TargetStatus{Failures: []v1alpha1.TargetFailure{{Kind: "Kustomization", Namespace: "shop", Name: "apps", Reason: v1alpha1.AccessDeniedReason}}}
	if e := explain.Explain(kustomization(), in(g)); len(e.Gates) != 0 {
		t.Errorf("denied: %+v", e.Gates)
	}
}

func TestForbiddenReferenceToOtherNamespaceHolds(t *testing.T) {
	g := opened("qa", targets())
	g.Namespace = "ops"
	obj := kustomization(annotated(v1alpha1.GatesAnnotation, "ops/qa"), heldBy("ops/qa"), approved("False", v1alpha1.AccessDeniedReason))
	if e := explain.Explain(obj, in(g)); e.State != explain.Held || e.Becomes != "" || e.Gates[0].State != explain.Denied {
		t.Errorf("%+v", e)
	}
	approved("False", v1alpha1.GateClosedReason)(obj)
	if e := explain.Explain(obj, in(g)); e.Becomes != explain.Free || e.Gates[0].State != explain.Opened {
		t.Errorf("if it may: %+v", e)
	}
}

func TestExplainDoesNotModifyObject(t *testing.T) {
	obj := kustomization(heldBy("shop/production"), annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"), owns("kubectl", "Apply", `{"f:spec":{"f:path":{}}}`))
	before := obj.DeepCopy()
	explain.Explain(obj, in(closed("production")))
	explain.Wait(obj, nil, noon)
	if !explain.IsHeld(obj) || !reflect.DeepEqual(before, obj) {
		t.Errorf("it was %v\nand is %v", before, obj)
	}
}

func TestRulesOfGateForManyNamespaces(t *testing.T) {
	shop := &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	tier := []v1alpha1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test"}}}
	g := closed("freeze", func(g *v1alpha1.Gate) {
		g.Namespace = "ops"
		g.Spec.Targets = []v1alpha1.TargetReference{
			{Kind: "Kustomization", Name: "*", Namespace: "*", MatchExpressions: tier},
			{Kind: "Kustomization", Name: "*", NamespaceSelector: shop},
			{Kind: "Kustomization", Name: "apps", NamespaceSelector: &v1alpha1.LabelSelector{}},
			{Kind: "Kustomization", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "bank"}}},
		}
	})
	known := in(g)
	known.Own = "gating-system"
	known.Labels = func(string) map[string]string { return shop.MatchLabels }
	obj := kustomization()
	want := []string{
		"spec.targets[0]: Kustomization * in all namespaces with tier notin (test)", "spec.targets[1]: Kustomization * in namespaces with team=shop",
		"spec.targets[2]: Kustomization apps in namespaces with any labels",
	}
	if got := explain.Explain(obj, known).Gates[0].Rules; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	obj.SetNamespace(known.Own)
	if got := explain.Explain(obj, known).Gates; len(got) > 0 {
		t.Errorf("nothing there is held, got %+v", got)
	}
	g.Status.Targets = &v1alpha1.TargetStatus{Failures: []v1alpha1.TargetFailure{{Kind: "Kustomization", Namespace: "*", Name: "*", Reason: v1alpha1.AccessDeniedReason}}}
	if got := explain.Explain(kustomization(), known).Gates; len(got) > 0 {
		t.Errorf("the controller does not let the gate, got %+v", got)
	}
}

func TestGateWithModeAuditHoldsNothingAndHasNoRemedy(t *testing.T) {
	audit := func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }
	e := explain.Explain(kustomization(heldBy("shop/b")), in(closed("a", audit), closed("b")))
	if a := e.Gates[0]; a.Holds || !a.WouldHold || a.Mode != v1alpha1.ModeAudit || a.State != explain.Closed {
		t.Errorf("%+v", a)
	}
	if b := e.Gates[1]; !b.Holds || b.WouldHold || b.Mode != "" {
		t.Errorf("%+v", b)
	}
	if got := commands(e); got != "kubectl gate open b -n shop --for 1h\n" {
		t.Errorf("remedies %q", got)
	}
	for _, g := range []*v1alpha1.Gate{opened("a", audit), closed("a", audit)} {
		if got := commands(explain.Explain(kustomization(), in(g))); got != "" {
			t.Errorf("remedies %q", got)
		}
	}
}
