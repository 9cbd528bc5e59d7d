package cli

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// why returns the explanation of kubectl gate why as JSON.
func (w *world) why(object string) explain.Explanation {
	w.Helper()
	return listOf[explain.Explanation](w, "why", object)[0]
}

func TestCommandNamedByWhyReleasesObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps := w.heldApps()
	e := w.why("ks/apps")
	if e.State != explain.Held || len(e.Remedies) != 1 || len(e.Gates) != 1 || !e.Gates[0].Holds || e.Waiting.Waits != "v2" {
		t.Fatalf("%+v", e)
	}
	if got := w.run(exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(e.Remedies[0].Command, "kubectl gate", program(), 1))); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	w.applies(apps, "v2")
	if e := w.why("ks/apps"); e.State != explain.Free || e.Gates[0].State != explain.Opened || e.Gates[0].Until == nil || e.Gates[0].RequestedBy == "" {
		t.Errorf("%+v", e)
	}
}

func TestWhyAcceptsAnyKindName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.Kustomization("apps"))
	for _, args := range [][]string{
		{"ks/apps"}, {"Kustomization/apps"}, {"kustomizations", "apps"}, {"kustomization.kustomize.toolkit.fluxcd.io/apps"}, {"KUSTOMIZATION", "apps"},
	} {
		if got := w.gate(append([]string{"why"}, args...)...); got != (output{"No gate governs Kustomization " + w.Namespace + "/apps.\n", "", 0}) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestWhyRefusesUnknownObjectsWithOneError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.Kustomization("apps"))
	for _, tc := range []struct{ args, want string }{
		{"ks/aps", `there is no Kustomization "aps" in namespace "` + w.Namespace + `"; did you mean "apps"?`},
		{"ks/unlike", `kubectl get kustomizations -A shows all`},
		{"kustomisation/apps", `unsupported kind "kustomisation": did you mean "kustomization"?`},
		{"widget/apps", `unsupported kind "widget": use bucket/NAME, certificate/NAME`},
		{"configmap/apps", `unsupported kind "ConfigMap": use bucket/NAME, certificate/NAME`},
		{"apps", "name one object, as KIND/NAME"},
		{"ks/apps ks/other", "name one object, as KIND/NAME"},
		{"", "name one object, as KIND/NAME"},
		{"ks/a/b", `there is no Kustomization "b" in namespace "a"`},
		{"ks/a/b/c", "name one object, as KIND/NAME"},
	} {
		got := w.gate(append([]string{"why"}, strings.Fields(tc.args)...)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.errOut, tc.want) || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
}

func TestWhyNamesSuspendingManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps := w.Kustomization("apps")
	w.Create(apps)
	w.Must(w.Flux(apps, `{"spec":{"suspend":true}}`))
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}})
	w.Decided(w.ReadGate("production"))
	e := w.why("ks/apps")
	if e.State != explain.Suspended || len(e.Owners) != 1 || e.Owners[0].Manager != "flux" || e.Owners[0].At == nil ||
		len(e.Remedies) != 2 || e.Remedies[1].Command != "flux resume kustomization apps -n "+w.Namespace || e.Gates[0].Rules[0] != "spec.targets[0]: Kustomization *" {
		t.Errorf("%+v", e)
	}
	w.Must(w.Flux(apps, `{"spec":{"suspend":false}}`)) // as flux resume does
	w.isHeldBy(apps, "production")
	if e := w.why("ks/apps"); e.State != explain.Held || len(e.Owners) != 0 {
		t.Errorf("%+v", e)
	}
}

func TestWhyReportsMissingGateInAnnotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps := w.Kustomization("apps")
	apps.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: "qa"})
	w.Create(apps)
	w.isHeldBy(apps, "qa")
	e := w.why("ks/apps")
	if e.State != explain.Held || e.Gates[0].State != explain.Missing || e.Gates[0].Rules[0] != "annotation "+v1alpha1.GatesAnnotation {
		t.Fatalf("%+v", e)
	}
	if got := w.run(exec.CommandContext(t.Context(), "bash", "-c", e.Remedies[0].Command)); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	w.Eventually("the target is released", func() error {
		if w.Read(apps); harness.Suspended(apps) {
			return errors.New("the target is still held")
		}
		return nil
	})
}

func TestWhyExplainsRequestInClosePeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	apps := w.Kustomization("apps")
	w.isHeldBy(apps, "production")
	if e := w.why("ks/apps"); !strings.HasPrefix(e.Remedies[0].Command, "kubectl gate open production") {
		t.Errorf("the close period allows requests: %+v", e.Remedies)
	}
	w.EditGate(w.ReadGate("production"), func(g *v1alpha1.Gate) { g.Spec.ClosePeriods[0].Override = v1alpha1.OverrideDeny })
	w.Decided(w.ReadGate("production"))
	if e := w.why("ks/apps"); !strings.HasPrefix(e.Remedies[0].Command, "kubectl edit gate production") {
		t.Errorf("the close period denies requests: %+v", e.Remedies)
	}
	if got := w.gate("open", "production", "--for", "1h"); !strings.Contains(got.out, "closed, close period freeze") {
		t.Errorf("%+v", got) // as why has reported
	}
}

func TestWhyCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dueCertificate("www")
	if e := w.why("cert/www"); e.State != explain.Held || e.Waiting.Reason != explain.RenewalDue {
		t.Errorf("%+v", e)
	}
}

func TestWhyOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	legacy := w.Kustomization("legacy")
	w.Create(legacy)
	w.Must(w.Flux(legacy, `{"spec":{"suspend":true}}`))
	infra := w.Kustomization("infra")
	infra.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: "qa"})
	w.Create(infra)
	w.isHeldBy(infra, "qa")
	w.Create(w.Kustomization("tools"))
	w.ClosedGate("quarter-end", v1alpha1.TargetReference{Kind: "Kustomization", Name: "legacy"})
	w.Decided(w.ReadGate("quarter-end"))
	w.shows("why")
}
