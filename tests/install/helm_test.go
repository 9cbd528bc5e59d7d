package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// helmUser is a user of Helm with the chart of this repository.
type helmUser struct {
	*testing.T
	cluster        *harness.ControlPlane
	program, chart string
}

// newHelm builds Helm and the chart, and starts a control plane without the product.
func newHelm(t *testing.T) *helmUser {
	t.Helper()
	c, err := harness.StartControlPlane("kustomize-controller", "source-controller")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	h := &helmUser{t, c, filepath.Join(harness.Root(), "bin", "helm"), ""}
	out := t.TempDir()
	for _, args := range [][]string{{"build", "-o", h.program, "helm.sh/helm/v3/cmd/helm"}, {"run", ".", "-root", harness.Root(), "-version", "v0.0.1", "-out", out, "chart"}} {
		build := exec.CommandContext(t.Context(), "go", append([]string{"-C", "release"}, args...)...)
		build.Dir = harness.Root()
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, text)
		}
	}
	h.kubectl("delete", "--ignore-not-found", "-f", filepath.Join(harness.Root(), "config", "crd", "bases"))
	h.chart = filepath.Join(out, "gating-controller-0.0.1.tgz")
	return h
}

// try runs Helm in the namespace of the controller.
func (h *helmUser) try(args ...string) (string, error) {
	cmd := exec.CommandContext(h.Context(), h.program, append(args, "--namespace", harness.RuntimeNamespace)...)
	home := filepath.Dir(h.chart)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.cluster.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h *helmUser) helm(args ...string) string {
	h.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.Fatalf("helm %q: %v: %s", args, err, out)
	}
	return out
}

func (h *helmUser) kubectl(args ...string) string {
	h.Helper()
	out, err := h.cluster.Kubectl(h.Context(), args...)
	if err != nil {
		h.Fatalf("kubectl %q: %v", args, err)
	}
	return out
}

// args returns the flags of the controller.
func (h *helmUser) args() string {
	h.Helper()
	return h.kubectl("-n", harness.RuntimeNamespace, "get", "deployment", "gating-controller", "-o", "jsonpath={.spec.template.spec.containers[0].args}")
}

// The test installs all add-ons, and then upgrades, rolls back and uninstalls.
func TestHelmInstallsUpgradesAndUninstalls(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	if out := h.helm("lint", h.chart); !strings.Contains(out, "0 chart(s) failed") || strings.Contains(out, "[WARNING]") {
		t.Errorf("lint: %s", out)
	}
	rules := filepath.Join(filepath.Dir(h.chart), "rules.yaml")
	if err := os.WriteFile(rules, []byte(prometheusKinds), 0o600); err != nil {
		t.Fatal(err)
	}
	h.kubectl("apply", "-f", rules)
	h.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", rules)
	all := []string{"--create-namespace"}
	for name := range addOns {
		all = append(all, "--set", name+".enabled=true")
	}
	h.helm(append([]string{"install", "gating", h.chart}, all...)...)
	if got := h.args(); !strings.Contains(got, "--ui-addr=") || !strings.Contains(got, "--events-addr=") {
		t.Errorf("with all add-ons, the flags are %s", got)
	}
	for _, object := range []string{"validatingadmissionpolicy/gate-overlay-verb", "mutatingadmissionpolicy/gate-hold", "crd/gates.gating.toolkit.fluxcd.io", "crd/gatelocks.internal.gating.toolkit.fluxcd.io"} {
		h.kubectl("get", object)
	}

	if out, err := h.try("upgrade", "gating", h.chart, "--set", "polices.enabled=true"); err == nil || !strings.Contains(out, "additional properties 'polices' not allowed") {
		t.Errorf("a misspelled value: %v: %s", err, out)
	}
	// Helm cannot roll back to a release with a CRD that it has kept since, so the add-on machines stays enabled.
	h.helm("upgrade", "gating", h.chart, "--set", "extraArgs={--concurrent=8}", "--set", "machines.enabled=true")
	if got := h.args(); !strings.Contains(got, "--concurrent=8") || strings.Contains(got, "--ui-addr=") {
		t.Errorf("after the upgrade, the flags are %s", got)
	}
	if out, err := h.cluster.Kubectl(t.Context(), "get", "mutatingadmissionpolicy", "gate-hold"); err == nil {
		t.Errorf("the upgrade leaves the lock: %s", out)
	}
	h.helm("rollback", "gating", "1")
	if got := h.args(); strings.Contains(got, "--concurrent=8") || !strings.Contains(got, "--ui-addr=") {
		t.Errorf("after the rollback, the flags are %s", got)
	}

	h.kubectl("create", "namespace", "shop")
	h.kubectl("apply", "-f", gateFile(t))
	h.helm("uninstall", "gating")
	h.kubectl("-n", "shop", "get", "gate", "production")
	for object := range strings.FieldsSeq(h.kubectl("get", "deployments,clusterroles,validatingadmissionpolicies,mutatingadmissionpolicies", "-A", "-o=name")) {
		_, name, _ := strings.Cut(object, "/")
		if strings.HasPrefix(name, "gat") && name != "gating-uninstall" { // a finalizer keeps this policy while there are definitions
			t.Errorf("%s is left", object)
		}
	}
	h.helm("install", "other", h.chart, "--take-ownership") // the definitions have stayed
	h.kubectl("-n", "shop", "get", "gate", "production")
	h.helm("uninstall", "other")
}

// Helm takes over objects that kubectl has installed.
func TestHelmTakesOwnership(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	h.kubectl("apply", "--server-side", "-k", filepath.Join(harness.Root(), "config", "default"))
	h.kubectl("create", "namespace", "shop")
	h.kubectl("apply", "-f", gateFile(t))
	if out, err := h.try("install", "gating", h.chart); err == nil || !strings.Contains(out, "cannot be imported into the current release") {
		t.Errorf("without --take-ownership: %v: %s", err, out)
	}
	h.helm("install", "gating", h.chart, "--take-ownership", "--set", "extraArgs={--concurrent=8}")
	if got := h.args(); !strings.Contains(got, "--concurrent=8") {
		t.Errorf("the flags are %s", got)
	}
	h.kubectl("-n", "shop", "get", "gate", "production")
}

// gateFile returns a file with a Gate.
func gateFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate.yaml")
	text := "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: production, namespace: shop}\nspec: {default: closed}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
