package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// TestCheckFindsProblems has its own control plane, because check examines the whole cluster.
func TestCheckFindsProblems(t *testing.T) {
	t.Parallel()
	c := guarded(t, "--enable-leader-election")
	w := newWorldOn(t, c)
	w.inForce()
	w.Eventually("check finds the controller without its Deployment", func() error {
		got := w.gate("check")
		if want := "warning  Deployment gating-controller: no Deployment of the controller was found, but Gates are reconciled: it runs elsewhere"; got.code != 0 || !strings.Contains(got.out, want) {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	w.deploys()
	w.Eventually("the controller is the leader", func() error {
		if got := w.gate("check"); got.code != 0 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	w.shows("sound")
	w.troubles()
	w.shows("check")
	w.expect(w.gate("check", "-o", "jsonpath={.kind} {.items[0].kind} {.items[0].severity}"), 1, "FindingList Finding error", "")
	w.partOfThePoliciesIsGone()
	w.version()
	w.checkRights()
}

// deploys creates the Deployment of config/default for the controller process of the test.
func (w *world) deploys() {
	w.Helper()
	_, err := w.Kubectl(w.Context(), "apply", "--server-side", "-f", filepath.Join(w.Dir(), "default.yaml"))
	w.Must(err)
	_, err = w.Kubectl(w.Context(), "-n", harness.RuntimeNamespace, "patch", "deployment", "gating-controller", "--subresource=status",
		"--type=merge", `-p={"status":{"replicas":1,"readyReplicas":1,"availableReplicas":1}}`)
	w.Must(err)
}

// troubles creates Gates that each have a problem.
func (w *world) troubles() {
	w.Helper()
	w.Create(w.Kustomization("apps"))
	w.Create(w.Kustomization("gates"))
	target := func(name string) []v1alpha1.TargetReference {
		return []v1alpha1.TargetReference{{Kind: "Kustomization", Name: name}}
	}
	window := func(start, end string) []v1alpha1.Period {
		return []v1alpha1.Period{{Name: "daily", Start: &start, End: &end}}
	}
	w.Gate("mornings", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: window("06:00", "09:00"), Targets: target("apps")})
	w.Gate("nights", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: window("22:00", "05:00"), Targets: target("apps")})
	w.Gate("nothing", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: target("app")})
	never := "0 0 31 4-6/2 *"
	w.Gate("stalled", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{{Name: "never", Schedule: &never, Duration: &v1alpha1.Duration{Duration: 3.6e12}}}})
	own := w.Gate("own", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: target("gates")})
	w.Must(w.Merge(own, `{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"gates","kustomize.toolkit.fluxcd.io/namespace":%q}}}`, w.Namespace))
	w.Gate("trial", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Mode: v1alpha1.ModeAudit, Targets: target("apps")})
	for _, name := range []string{"mornings", "nights", "nothing", "stalled", "own", "trial"} {
		w.Decided(w.ReadGate(name))
	}
	w.Eventually("the targets are counted", func() error {
		for _, name := range []string{"mornings", "nights", "own", "trial"} {
			if counts := w.ReadGate(name).Status.Targets; counts == nil || counts.Total != 1 {
				return fmt.Errorf("%s: %+v", name, counts)
			}
		}
		return nil
	})
	resting := w.Gate("resting", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Must(w.Merge(resting, `{"spec":{"suspend":true}}`))
}

func (w *world) partOfThePoliciesIsGone() {
	w.Helper()
	_, err := w.Kubectl(w.Context(), "delete", "validatingadmissionpolicybinding", "gate-edit")
	w.Must(err)
	w.expect(w.gate("check"), 1, "error    ValidatingAdmissionPolicy gate-edit: no binding with the action Deny puts it in force: any user who may patch a Gate can change its spec\n         -> kubectl apply --server-side -f policies.yaml\n", "")
}

// checkRights runs check as users with fewer and fewer read permissions.
func (w *world) checkRights() {
	w.Helper()
	_, err := w.Kubectl(w.Context(), "create", "clusterrolebinding", "dora-views", "--clusterrole=gate-viewer", "--user=dora")
	w.Must(err)
	dora := w.as("dora").gate("check")
	w.expect(dora, 1, `note     you: you may not list deployments.apps, validatingadmissionpolicies.admissionregistration.k8s.io, `, "")
	w.expect(dora, 1, " gitrepositories.source.toolkit.fluxcd.io, ", "")
	w.expect(dora, 1, " checks were skipped.", "")
	w.expect(dora, 1, "Gate "+w.Namespace+"/stalled: it is stalled", "")
	w.may("erin", "gate-viewer")
	w.expect(w.as("erin").gate("check"), 1, "gates.gating.toolkit.fluxcd.io of all namespaces", "")
	w.expect(w.as("erin").gate("check"), 1, "Gate "+w.Namespace+"/stalled: it is stalled", "")
	grace := w.as("grace").gate("check")
	w.expect(grace, 0, "gates.gating.toolkit.fluxcd.io of all namespaces, gates.gating.toolkit.fluxcd.io", "")
	w.expect(grace, 0, `you may not list and get gates in namespace "`+w.Namespace+`", which kubectl gate list needs`, "")
	w.expect(grace, 0, "\nNo errors in the resources that you may read; ", "")
	if strings.Contains(grace.out, "error  ") || strings.Contains(grace.out, "sound") {
		w.Errorf("%+v", grace)
	}
}

// version runs version as a user who may list the Deployments of the controllers, and as one who may not.
func (w *world) version() {
	w.Helper()
	w.shows("version")
	_, err := w.Kubectl(w.Context(), "create", "clusterrole", "deployments", "--verb=list", "--resource=deployments.apps")
	w.Must(err)
	_, err = w.Kubectl(w.Context(), "create", "clusterrolebinding", "dora-deployments", "--clusterrole=deployments", "--user=henry")
	w.Must(err)
	w.expect(w.as("henry").gate("version"), 0, "gating-system/gating-controller   v0.1.0", "")
	w.expect(w.as("grace").gate("version"), 0, "plugin", `warning: you may not list deployments.apps: that needs the verb "list", which the ClusterRole view has`)
}
