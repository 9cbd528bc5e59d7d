package policies

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// The controller annotates Machines with the role of config/machines, for writers who may do so themselves.
func TestAWriterOfAMachineCertificateRefreshNeedsPatchOnMachines(t *testing.T) {
	w := newWorld(t)
	w.Must(w.InstallComponent(w.Context(), "machines"))
	t.Cleanup(func() {
		if err := w.RemoveComponent(context.WithoutCancel(w.Context()), "machines"); err != nil {
			t.Error(err)
		}
	})
	const editor, viewer = "machine-certificate-refresh-editor", "machine-certificate-refresh-viewer"
	mallory, olga := w.as("mallory", editor, viewer), w.as("olga", editor, viewer)
	w.bind(olga.Name, false, "patch", nil, "machines.cluster.x-k8s.io")

	machine := harness.Object("cluster.x-k8s.io/v1beta2", "Machine", w.Key("a"))
	machine.SetAnnotations(map[string]string{"machine.cluster.x-k8s.io/certificates-expiry": time.Now().Add(72 * time.Hour).UTC().Format(time.RFC3339)})
	machine.Object["spec"] = map[string]any{"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "s"},
		"infrastructureRef": map[string]any{"kind": "K", "name": "n", "apiGroup": "a.example.com"}}
	w.Create(machine)
	w.Gate("nights", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	file := w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"MachineCertificateRefresh","metadata":{"name":"nodes"},"spec":{"gateRefs":[{"name":"nights"}]}}`)
	refuse := func(args ...string) error {
		out, err := mallory.kubectl(w.Context(), w.Namespace, args...)
		if err == nil || !strings.Contains(out+err.Error(), "may not write machine certificate refresh "+w.Namespace+"/nodes: that needs the verb patch on machines.cluster.x-k8s.io") {
			return fmt.Errorf("%q: %s, %w", args, out, err)
		}
		return nil
	}
	w.Eventually("the policy is in force", func() error { return refuse("create", "--dry-run=server", "-f", file) })
	w.allowed(olga, "create", "-f", file)
	for _, args := range [][]string{
		{"patch", "gtmcr", "nodes", "--type=merge", "-p", `{"spec":{"ttl":"2y"}}`},
		{"annotate", "gtmcr", "nodes", "reconcile.fluxcd.io/requestedAt=now"},
	} {
		if err := refuse(args...); err != nil {
			t.Error(err)
		}
	}
	w.Eventually("the Machine has a request", func() error {
		if w.Read(machine); machine.GetAnnotations()["v1beta2.k8sd.io/refresh-certificates"] != "1y" {
			return fmt.Errorf("annotations %q", machine.GetAnnotations())
		}
		return nil
	})
	w.allowed(olga, "delete", "gtmcr", "nodes")
	w.Eventually("the request is withdrawn", func() error {
		if w.Read(machine); machine.GetAnnotations()["v1beta2.k8sd.io/refresh-certificates"] != "" {
			return fmt.Errorf("annotations %q", machine.GetAnnotations())
		}
		return nil
	})
}
