package ui

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// hotfixOfApps closes the Kustomization apps of a Gate for a day.
const hotfixOfApps = "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateException\nmetadata: {name: apps}\nspec: {gateRef: {name: web}, default: closed, targets: [{kind: Kustomization, name: apps}], validFrom: \"2026-11-28T00:00:00Z\", validUntil: \"2026-11-29T00:00:00Z\"}\n"

// limited returns the reader of a Gate with an open request for the Kustomization apps from 18:00 to 20:00 in Oslo, and of that target. An
// exception with a selector opens the target on the next day.
func limited(t *testing.T) *fake {
	t.Helper()
	g := gateOf("web", func(g *v1alpha1.Gate) {
		g.Annotations = map[string]string{v1alpha1.OpenRequestedAtAnnotation: "2026-11-26T17:00:00Z/2h,only=Kustomization/apps"}
		g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}
	})
	for _, r := range gate.ApplyRequests(g, ledger.Stamped, noon) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": "shop", "name": "apps", "labels": map[string]any{"team": "payments"}},
	}}
	e := explain.Explain(obj, explain.Cluster{Gates: []*v1alpha1.Gate{g}, Now: noon})
	hotfix := v1alpha1.GateExceptionSpec{
		GateRef: v1alpha1.GateReference{Name: "web"}, Default: v1alpha1.StateOpened, ValidFrom: metav1.NewTime(noon.AddDate(0, 0, 1)), ValidUntil: metav1.NewTime(noon.AddDate(0, 0, 2)),
		Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"team": "payments"}}},
	}
	return &fake{
		gates: []*v1alpha1.Gate{g, gateOf("other")}, why: &e, targets: []Target{{State: "held", Waiting: explain.Waiting{Target: e.Target}}},
		exceptions: []*v1alpha1.GateException{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hotfix"}, Spec: hotfix}},
	}
}

func TestGatePageShowsTimelineOfTarget(t *testing.T) {
	t.Parallel()
	const query = "?target=Kustomization%2Fshop%2Fapps"
	only := []string{"opened Thu 26 Nov 18:00 – 20:00, open request", ", exception hotfix", "<td>open request</td>", "Next for Kustomization shop/apps"}
	shows(t, limited(t), "/gate/shop/web"+query, append(only, `The timeline of Kustomization shop/apps, including requests`, `href="?">Timeline of the gate`, `href="?days=7&amp;target=Kustomization%2Fshop%2Fapps"`)...)
	whole := shows(t, limited(t), "/gate/shop/web", `href="./../../gate/shop/web`+query+`">timeline`)
	for _, text := range only {
		if strings.Contains(whole, text) {
			t.Errorf("the timeline of the gate shows %q", text)
		}
	}
	shows(t, limited(t), "/target/Kustomization/shop/apps?zone=UTC", `href="./../../../gate/shop/web?zone=UTC&amp;target=Kustomization%2Fshop%2Fapps">timeline`)
}

func TestTimelineOfOtherObjectIsRefused(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/gate/shop/web?target=apps":                      {400, "target=apps: must have the form KIND/NAMESPACE/NAME"},
		"/gate/shop/other?target=Kustomization/shop/apps": {404, "Kustomization shop/apps is not a target of gate shop/other"},
	} {
		if code, page := get(t, limited(t), path); code != want.code || !strings.Contains(page, want.text) {
			t.Errorf("%s: %d: %s", path, code, mainOf(page))
		}
	}
}
