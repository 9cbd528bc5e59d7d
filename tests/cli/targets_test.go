package cli

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// holdsTwo creates a Gate that holds two of three Kustomizations. One of the two and the third one belong to a team.
func (w *world) holdsTwo() (apps, web *unstructured.Unstructured) {
	w.Helper()
	apps, web = w.Kustomization("apps"), w.Kustomization("web")
	other := w.Kustomization("other")
	web.SetLabels(map[string]string{"team": "shop"})
	other.SetLabels(map[string]string{"team": "shop"})
	for _, obj := range []*unstructured.Unstructured{apps, web, other} {
		w.Create(obj)
	}
	w.Decided(w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{
		{Kind: "Kustomization", Name: "apps"}, {Kind: "Kustomization", Name: "web"},
	}}))
	w.isHeldBy(apps, "production")
	w.isHeldBy(web, "production")
	return apps, web
}

func TestExceptionForSomeTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps, web := w.holdsTwo()
	for only, want := range map[string]string{
		"kustomization/appz":  `there is no Kustomization "appz"`,
		"kustomization/other": "Kustomization " + w.Namespace + "/other is not a target of gate " + w.Namespace + "/production",
		"kustomisation/apps":  `unsupported kind "kustomisation": did you mean "Kustomization"?`,
		"apps":                "name one object, as KIND/NAME",
	} {
		w.expect(w.gate("exception", "production", "--for=1h", "--apply", "--only", only), exitError, "", want)
	}
	w.expect(w.gate("exception", "production", "--for=1h", "--name=hotfix", "--apply", "--only", "kustomizations/apps"), 0, "", "is created, in force until")
	w.Eventually("apps is released", func() error {
		if w.Read(apps); harness.Suspended(apps) {
			return errors.New("it is held")
		}
		return nil
	})
	w.isHeldBy(web, "production")
	w.expect(w.gate("exception", "production", "--for=1h", "--only-selector=team=shop"), 0, "  targets:\n  - kind: Kustomization\n    name: web\n  validFrom", "")
	w.expect(w.gate("exception", "production", "--for=1h", "--only-selector=team=none"), exitError, "", "no target of gate "+w.Namespace+"/production has the labels team=none")
	w.expect(w.gate("preview", "--target", "ks/apps"), 0, "hotfix", "")
	w.expect(w.gate("preview", "--target", "ks/other"), 0, "", "No gate among these governs Kustomization "+w.Namespace+"/other.")
	w.Eventually("the targets are counted", func() error {
		if ran := w.gate("list"); !strings.Contains(ran.out, "closed (1 of 2 open)") {
			return errors.New(ran.out)
		}
		return nil
	})
	w.expect(w.gate("status", "production"), 0, "is closed (1 of 2 open) since", "")
	w.expect(w.gate("why", "ks/apps"), 0, "exception hotfix", "")
	w.expect(w.gate("why", "ks/web"), 0, "held", "")
}

func TestRequestForSomeTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps, web := w.holdsTwo()
	for flag, want := range map[string]string{
		"--only=kustomization/appz":     `there is no Kustomization "appz"`,
		"--only=kustomization/other":    "Kustomization " + w.Namespace + "/other is not a target of gate " + w.Namespace + "/production",
		"--only=kustomization/*":        "use --only-selector, or kubectl gate exception",
		"--only-selector=team=checkout": "no target of gate " + w.Namespace + "/production has the labels team=checkout",
		"--only-selector=team=":         "",
	} {
		w.expect(w.gate("open", "production", "--for=1h", flag), exitError, "", want)
	}
	released := func(name string, obj *unstructured.Unstructured) {
		w.Eventually(name+" is released", func() error {
			if w.Read(obj); harness.Suspended(obj) {
				return errors.New("it is held")
			}
			return nil
		})
	}
	w.expect(w.gate("open", "production", "--for=1h", "--only=kustomization/apps", "--reason=INC-77"), 0, "requesting to open only Kustomization/apps until", "")
	released("apps", apps)
	w.isHeldBy(web, "production")
	w.expect(w.gate("why", "ks/apps"), 0, "admin", "")
	w.expect(w.gate("open", "production", "--for=1h", "--only-selector=team=shop"), 0, "requesting to open only Kustomization/web until", "")
	released("web", web)
	w.expect(w.gate("close", "production", "--for=1h", "--only=kustomization/apps"), 0, "requesting to close only Kustomization/apps until", "")
	w.isHeldBy(apps, "production")
	w.expect(w.gate("reset", "production", "--only=kustomization/other"), 0, "has no request to withdraw", "")
	w.expect(w.gate("open", "production", "--for=1h", "--only=kustomization/apps", "--only=kustomization/web"), 0, "requesting to open only", "")
	released("apps", apps)
	w.expect(w.gate("reset", "production", "--only=kustomization/apps"), 0,
		"withdrawing the open request of admin only for Kustomization/apps, Kustomization/web, for Kustomization/apps", "")
	w.isHeldBy(apps, "production")
	w.expect(w.gate("close", "production", "--for=1h", "--only=kustomization/apps"), 0, "requesting to close only Kustomization/apps until", "")
	if w.Read(web); harness.Suspended(web) {
		t.Error("the other target of the request is held")
	}
	w.expect(w.gate("reset", "production"), 0, "withdrawing the open request of admin only for Kustomization/web", "")
	w.expect(w.gate("reset", "production"), 0, "withdrawing the close request of admin only for Kustomization/apps", "")
	w.isHeldBy(web, "production")
}
