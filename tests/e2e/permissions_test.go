package e2e

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestForbiddenKindStopsNoOther(t *testing.T) {
	w := newWorld(t)
	role := &rbacv1.ClusterRole{}
	w.Must(w.Client.Get(w.Context(), client.ObjectKey{Name: "gating-controller"}, role))
	complete := slices.Clone(role.Rules)
	restart := func(rules []rbacv1.PolicyRule) {
		t.Helper()
		role.Rules = rules
		w.Must(w.Client.Update(w.Context(), role))
		w.Must(gating.Stop())
		var err error
		gating, err = cluster.StartGatingController(w.Context())
		w.Must(err)
	}
	restart(slices.DeleteFunc(slices.Clone(complete), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, "helm.toolkit.fluxcd.io")
	}))
	app := w.kustomization("app", "ExternalArtifact", "app")
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{
		{Kind: "HelmRelease", Name: "a"}, {Kind: "HelmRelease", Name: "b"}, {Kind: "Kustomization", Name: "app"},
	}})
	w.suspend(app, true)
	w.Eventually("the failure is in the status", func() error {
		g := &v1alpha1.Gate{}
		if err := w.Client.Get(w.Context(), w.Key("production"), g); err != nil {
			return err
		}
		if n := len(g.Status.TargetFailures()); n != 2 || g.Status.TargetFailures()[0].Reason != v1alpha1.ReadFailedReason {
			return fmt.Errorf("status.targets.failures is %v", g.Status.TargetFailures())
		}
		return nil
	})
	g := &v1alpha1.Gate{}
	g.Namespace, g.Name = w.Namespace, "production"
	w.Must(w.Client.Delete(w.Context(), g))
	w.suspend(app, false)
	restart(complete)
}
