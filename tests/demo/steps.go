package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// timeout bounds changes that must happen.
	timeout = time.Minute
	// patience is how long tests watch for changes that must not happen. With an open gate they take a fraction of that.
	patience = 5 * time.Second
	// lead is the time until the period that opens the gate.
	lead = 12 * time.Second
	// window is the window of the manual open request.
	window = 10 * time.Second
)

var (
	appKey  = client.ObjectKey{Namespace: "default", Name: "app"}
	gateKey = client.ObjectKey{Namespace: "default", Name: "production"}
)

type step struct {
	title string
	run   func(context.Context) error
}

func (d *demo) steps() []step {
	return []step{
		{"Without a gate, Flux applies revision v1 at once", d.withoutGate},
		{"A gate that is closed by default takes hold of the Kustomization", d.gateCloses},
		{"Revision v2 is published and does NOT arrive", d.heldBack("v2", "v1")},
		{"kubectl gate open opens the gate: revision v2 arrives", d.openByHand},
		{fmt.Sprintf("The window of %s ends and the gate closes by itself", window), d.windowEnds},
		{"Revision v3 is published and does NOT arrive", d.heldBack("v3", "v2")},
		{"A scheduled period opens the gate: revision v3 arrives", d.scheduleOpens},
	}
}

func (d *demo) withoutGate(ctx context.Context) error {
	if err := d.publish(ctx, "v1"); err != nil {
		return err
	}
	app := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", appKey)
	app.Object["spec"] = map[string]any{
		"interval": "1h", "prune": true, "path": "./",
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": appKey.Name},
	}
	if err := d.client().Create(ctx, app); err != nil {
		return err
	}
	return d.arrives(ctx, "v1")
}

// manifest returns the gate of the demo. The extra lines are added to its spec.
func manifest(extra string) string {
	return fmt.Sprintf(`apiVersion: gating.toolkit.fluxcd.io/v1alpha1
kind: Gate
metadata:
  name: %s
  namespace: %s
spec:
  interval: 1m
  default: closed
  window: %s
  targets:
  - kind: Kustomization
    name: %s
%s`, gateKey.Name, gateKey.Namespace, window, appKey.Name, extra)
}

func (d *demo) apply(ctx context.Context, manifest string) error {
	file := filepath.Join(d.cluster.Dir(), "gate.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return err
	}
	_, err := d.kubectl(ctx, "apply", "-f", file)
	return err
}

func (d *demo) gateCloses(ctx context.Context) error {
	if err := d.apply(ctx, manifest("")); err != nil {
		return err
	}
	return d.becomes(ctx, metav1.ConditionFalse, true)
}

// heldBack publishes a revision, requests a reconciliation as flux reconcile does, and expects that the previous revision stays.
func (d *demo) heldBack(revision, stays string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := d.publish(ctx, revision); err != nil {
			return err
		}
		if _, err := d.kubectl(ctx, "annotate", "--overwrite", "kustomization/"+appKey.Name,
			"reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano)); err != nil {
			return err
		}
		if err := harness.Throughout(ctx, patience, "revision "+stays+" stays", d.applied(ctx, stays)); err != nil {
			return err
		}
		d.printf("observed for %s: the ConfigMap is still of revision %s", patience, stays)
		return d.plugin(ctx, "why", "kustomization/"+appKey.Name)
	}
}

func (d *demo) openByHand(ctx context.Context) error {
	if err := d.plugin(ctx, "open", gateKey.Name, "--for", window.String(), "--reason", "the demo"); err != nil {
		return err
	}
	if err := d.becomes(ctx, metav1.ConditionTrue, false); err != nil {
		return err
	}
	return d.arrives(ctx, "v2")
}

func (d *demo) windowEnds(ctx context.Context) error {
	g, err := d.gate(ctx)
	if err != nil {
		return err
	}
	d.printf("status.resetToDefaultAt is %s, now it is %s", g.Status.ResetToDefaultAt.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
	return d.becomes(ctx, metav1.ConditionFalse, true)
}

func (d *demo) scheduleOpens(ctx context.Context) error {
	from := time.Now().UTC().Truncate(time.Second).Add(lead)
	if err := d.apply(ctx, manifest(fmt.Sprintf(`  openPeriods:
  - name: maintenance
    from: %q
    until: %q
`, from.Format(time.RFC3339), from.Add(time.Hour).Format(time.RFC3339)))); err != nil {
		return err
	}
	if err := harness.Eventually(ctx, timeout, "the status has the next opening", func() error {
		g, err := d.gate(ctx)
		if err == nil && (g.Status.NextTransition == nil || !g.Status.NextTransition.At.Time.Equal(from)) {
			err = fmt.Errorf("status.nextTransition is %v", g.Status.NextTransition)
		}
		return err
	}); err != nil {
		return err
	}
	d.printf("status.nextTransition: opened at %s by 'maintenance'", from.Format(time.RFC3339))
	if err := d.becomes(ctx, metav1.ConditionTrue, false); err != nil {
		return err
	}
	if now := time.Now(); now.Before(from) {
		return fmt.Errorf("the gate opened at %s, before %s", now, from)
	}
	return d.arrives(ctx, "v3")
}

// plugin is the path of the plugin.
func plugin() string { return filepath.Join(harness.Root(), "bin", "kubectl-gate") }

// plugin runs kubectl gate and prints its output.
func (d *demo) plugin(ctx context.Context, args ...string) error {
	d.printf("$ kubectl gate %s", shown(args))
	cmd := exec.CommandContext(ctx, plugin(), args...) //nolint:gosec // built from this repository
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.Kubeconfig)
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		d.printf("%s", strings.TrimRight(line, "\n"))
	}
	return err
}

// shown returns arguments as a user would type them.
func shown(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if quoted[i] = arg; strings.Contains(arg, " ") {
			quoted[i] = strconv.Quote(arg)
		}
	}
	return strings.Join(quoted, " ")
}

// publish replaces the content of the artifact with a ConfigMap of a revision.
func (d *demo) publish(ctx context.Context, revision string) error {
	content := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\ndata:\n  revision: %s\n", appKey.Name, appKey.Namespace, revision)
	d.printf("published revision %s", revision)
	return d.artifacts.Publish(ctx, d.client(), appKey, revision, map[string]string{"app.yaml": content})
}

func (d *demo) applied(ctx context.Context, revision string) func() error {
	return func() error {
		config := &corev1.ConfigMap{}
		if err := d.client().Get(ctx, appKey, config); err != nil {
			return err
		}
		if got := config.Data["revision"]; got != revision {
			return fmt.Errorf("the ConfigMap is of revision %s", got)
		}
		return nil
	}
}

func (d *demo) arrives(ctx context.Context, revision string) error {
	begin := time.Now()
	if err := harness.Eventually(ctx, timeout, "revision "+revision+" arrives", d.applied(ctx, revision)); err != nil {
		return err
	}
	d.printf("observed: the ConfigMap is of revision %s after %.1fs", revision, time.Since(begin).Seconds())
	return nil
}

func (d *demo) gate(ctx context.Context) (*v1alpha1.Gate, error) {
	g := &v1alpha1.Gate{}
	return g, d.client().Get(ctx, gateKey, g)
}

// becomes waits until the gate has a state and the target follows it, and prints both.
func (d *demo) becomes(ctx context.Context, opened metav1.ConditionStatus, suspended bool) error {
	app := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", appKey)
	err := harness.Eventually(ctx, timeout, fmt.Sprintf("Opened is %s", opened), func() error {
		g, err := d.gate(ctx)
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionPresentAndEqual(g.Status.Conditions, v1alpha1.OpenedCondition, opened) {
			return fmt.Errorf("conditions are %v", g.Status.Conditions)
		}
		if !meta.IsStatusConditionTrue(g.Status.Conditions, "Ready") || meta.IsStatusConditionTrue(g.Status.Conditions, "Reconciling") {
			return fmt.Errorf("conditions are %v", g.Status.Conditions)
		}
		if err := d.client().Get(ctx, appKey, app); err != nil {
			return err
		}
		if got, _, err := unstructured.NestedBool(app.Object, "spec", "suspend"); err != nil || got != suspended {
			return fmt.Errorf("spec.suspend of the Kustomization is %v", got)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.printf("observed: spec.suspend of the Kustomization is %v", suspended)
	table, err := d.kubectl(ctx, "get", "gate", gateKey.Name)
	if err != nil {
		return err
	}
	d.printf("%s", strings.ReplaceAll(strings.TrimSpace(table), "\n", "\n         "))
	return nil
}

// kubectl prints and runs a command.
func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	if args[0] != "apply" {
		d.printf("$ kubectl %s", strings.Join(args, " "))
	}
	return d.cluster.Kubectl(ctx, append([]string{"--namespace", gateKey.Namespace}, args...)...)
}
