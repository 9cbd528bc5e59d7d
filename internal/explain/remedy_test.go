package explain_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/target"
)

const opens = "kubectl gate open production -n shop --for 1h\n"

func TestRemedyOfHeldObjectOpensItsGate(t *testing.T) {
	held := kustomization(heldBy("shop/production"))
	for _, tc := range []struct {
		name string
		gate *v1alpha1.Gate
		want string
		// effect is a part of the effect.
		effect string
	}{
		{"it is closed by default", closed("production"), opens, "for an hour"},
		{"spec.window is shorter", closed("production", func(g *v1alpha1.Gate) { g.Spec.Window = &v1alpha1.Duration{Duration: 20 * time.Minute} }), "kubectl gate open production -n shop --for 20m\n", "for 20m, its spec.window"},
		{"spec.window is ten seconds", closed("production", func(g *v1alpha1.Gate) { g.Spec.Window = &v1alpha1.Duration{Duration: 10 * time.Second} }), "kubectl gate open production -n shop --for 10s\n", "for 10s, its spec.window"},
		{"spec.window is longer", closed("production", func(g *v1alpha1.Gate) { g.Spec.Window = &v1alpha1.Duration{Duration: 90 * time.Minute} }), opens, "for an hour"},
		{"spec.window is shorter, and it asks for approvals", closed("production", fourEyes, func(g *v1alpha1.Gate) { g.Spec.Window = &v1alpha1.Duration{Duration: 90 * time.Second} }), "kubectl gate open production -n shop --for 1m30s\n", "requests it; once other users have approved it (1, with kubectl gate approve gate/production -n shop) it releases the targets of the gate for 1m30s, its spec.window"},
		{"somebody has closed it", opened("production", requestedClose, func(g *v1alpha1.Gate) { g.Status.Conditions[0].Status = "False" }), opens, "for an hour, and after that. It ends the close request of alice: incident"},
		{"a close period allows requests", closed("production", freeze("")), opens, "releases"},
		{"a close period denies requests", closed("production", freeze(v1alpha1.OverrideDeny)), "kubectl edit gate production -n shop\n", "close period freeze, which has override: Deny"},
		{"a close period denies requests, and its calendar cannot be read", closed("production", holidays), "kubectl get configmap days -n shop -o yaml\n", "closes all the time until the calendar is fixed: key no.ics: has not been read"},
		{"somebody has closed it in a hard freeze", closed("production", freeze(v1alpha1.OverrideDeny), requestedClose), "kubectl edit gate production -n shop\n", "override: Deny"},
		{"what it watches is not ready", opened("production", watching, func(g *v1alpha1.Gate) { g.Status.Conditions[0].Status = "False" }), "kubectl describe kustomization staging -n shop\n", "Ready is False"},
		{"it asks for approvals", closed("production", fourEyes), opens, "requests it; once other users have approved it (1, with kubectl gate approve gate/production -n shop) it releases the targets of the gate for an hour"},
		{"a request waits for approval", closed("production", fourEyes, waiting), "kubectl gate approve gate/production -n shop\n", "approves the open request of alice, which waits for 1 more; after the last it releases the targets of the gate"},
		{"it asks for approvals in a hard freeze", closed("production", fourEyes, freeze(v1alpha1.OverrideDeny)), "kubectl edit gate production -n shop\n", "override: Deny"},
		{
			"its spec is invalid",
			closed("production", because(v1alpha1.InvalidSpecReason, ""), func(g *v1alpha1.Gate) { g.Spec.TimeZone = "Europe/Atlantis" }), "kubectl edit gate production -n shop\n", "fix its spec",
		},
		{
			"nobody looks at it", closed("production", func(g *v1alpha1.Gate) { g.Spec.Suspend = true }),
			`kubectl patch gate production -n shop --type merge -p '{"spec":{"suspend":false}}'` + "\n", "reconcile the gate again",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.gate.DeepCopy()
			e := explain.Explain(held, in(tc.gate))
			if got := commands(e); got != tc.want || !strings.Contains(e.Remedies[0].Effect, tc.effect) {
				t.Errorf("%s%+v\nwant %s, %s", got, e.Remedies, tc.want, tc.effect)
			}
			if len(before.Annotations) != len(tc.gate.Annotations) || len(before.Status.Requests) != len(tc.gate.Status.Requests) {
				t.Error("the gate is changed")
			}
		})
	}
}

func TestRemedyOfAddedKindIsPatch(t *testing.T) {
	kinds, err := target.ParseKinds([]string{"batch/CronJob"})
	if err != nil {
		t.Fatal(err)
	}
	target.SetKinds(kinds...)
	t.Cleanup(func() { target.SetKinds() })
	job := newObject("batch/v1", "CronJob", "backup", suspendedBy("kustomize-controller"))
	g := closed("production", targets(v1alpha1.TargetReference{Kind: "CronJob", Name: "backup"}))
	e := explain.Explain(job, in(g))
	if want := opens + `kubectl patch cronjob.batch backup -n shop --type merge -p '{"spec":{"suspend":null}}'` + "\n"; commands(e) != want ||
		!strings.HasSuffix(e.Remedies[1].Effect, "remove spec.suspend from Git") {
		t.Errorf("%s%+v", commands(e), e.Remedies)
	}
	if w := explain.Wait(job, nil, noon); w.Reason != explain.Stopped {
		t.Errorf("it waits for %s", w.Reason)
	}
}

func TestRemedyFollowsState(t *testing.T) {
	respecting := func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeLenient }
	for _, tc := range []struct {
		name string
		obj  *unstructured.Unstructured
		gate *v1alpha1.Gate
		want string
	}{
		{"foreign", kustomization(suspendedBy("flux")), closed("production"), opens + "flux resume kustomization apps -n shop\n"},
		{"foreign, and its gate is open", kustomization(suspendedBy("flux")), opened("production"), "flux resume kustomization apps -n shop\n"},
		{"held and suspended", kustomization(heldBy("shop/production"), suspendedBy("alice")), closed("production"), opens + "flux resume kustomization apps -n shop\n"},
		{"resumed", kustomization(named("shop/production", ""), approved("True", v1alpha1.ResumedReason)), closed("production", respecting), "flux suspend kustomization apps -n shop\n"},
		{"free", kustomization(), opened("production"), "kubectl gate close production -n shop --for 1h\n"},
		{"not governed", kustomization(), opened("production", targets()), ""},
		{"about to be held", kustomization(), closed("production"), ""},
		{
			"it names one gate that does not exist", kustomization(annotated(v1alpha1.GatesAnnotation, "qa"), heldBy("shop/qa")), opened("production"),
			"kubectl annotate kustomization.kustomize.toolkit.fluxcd.io apps -n shop gating.toolkit.fluxcd.io/gates-\n",
		},
		{
			"it names a gate that does not exist and another", kustomization(annotated(v1alpha1.GatesAnnotation, "qa, production"), heldBy("shop/qa")), opened("production"),
			"kubectl annotate kustomization.kustomize.toolkit.fluxcd.io apps -n shop --overwrite gating.toolkit.fluxcd.io/gates=production\n",
		},
		{"a foreign source", newObject("source.toolkit.fluxcd.io/v1", "GitRepository", "apps", suspendedBy("flux")), closed("production"), "flux resume source git apps -n shop\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := explain.Explain(tc.obj, in(tc.gate))
			if got := commands(e); got != tc.want {
				t.Errorf("%swant %s", got, tc.want)
			}
			for _, r := range e.Remedies {
				if strings.Contains(r.Command, " close ") && r.Effect != "holds it for an hour, or until a user opens the gate" {
					t.Error(r.Effect)
				}
			}
		})
	}
}

// holidays adds a close period with a calendar and override: Deny.
func holidays(g *v1alpha1.Gate) {
	g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Override: v1alpha1.OverrideDeny, Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{
		ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"},
	}}}}
}
