package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// waits returns the JSON items of kubectl gate pending.
func (w *world) waits(args ...string) []explain.Waiting {
	w.Helper()
	return listOf[explain.Waiting](w, append([]string{"pending"}, args...)...)
}

// listOf runs a command with -o json and returns the items of the List, whose version and kind must be those of the docs.
func listOf[T any](w *world, args ...string) []T {
	w.Helper()
	got := w.gate(append(args, "-o", "json")...)
	var list struct {
		APIVersion, Kind string
		Items            []T
	}
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || got.code != 0 || list.APIVersion != "cli.gating.toolkit.fluxcd.io/v1alpha1" ||
		!strings.Contains(cli.Reports(), "| `"+list.Kind+"` |") {
		w.Fatalf("%v: %+v: %v", args, got, err)
	}
	return list.Items
}

// open opens a Gate for an hour.
func (w *world) open(name string) {
	w.Helper()
	if got := w.gate("open", name, "--for", "1h"); got.code != 0 {
		w.Fatalf("%+v", got)
	}
}

func TestPendingShowsWaitingRevisionUntilGateOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps := w.heldApps()
	all := w.waits()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	got := all[0]
	if got.Target.Name != "apps" || got.Gates[0] != w.Namespace+"/production" || got.Reason != explain.NewRevision || got.Revision != "v1" || got.Waits != "v2" ||
		got.Source.Kind != "ExternalArtifact" || got.Since == nil || time.Since(got.Since.Time) > time.Minute {
		t.Errorf("%+v", got)
	}
	w.open("production")
	w.applies(apps, "v2")
	if got := w.gate("pending"); got != (output{"", "Nothing waits.\n", 0}) {
		t.Errorf("%+v", got)
	}
}

func TestPendingOmitsObjectsWithNothingNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps := w.published()
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"})
	w.isHeldBy(apps, "production")
	if got := w.gate("pending"); got != (output{"", "No pending changes. 1 held, --all lists them.\n", 0}) {
		t.Errorf("%+v", got)
	}
	if all := w.waits("--all"); len(all) != 1 || all[0].Reason != explain.NothingNew || all[0].Revision != "v1" {
		t.Errorf("%+v", all)
	}
}

func TestPendingReportsHeldSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registry := harness.StartRegistry()
	t.Cleanup(registry.Stop)
	push := func(text string) {
		w.Must(registry.Push("app", "latest", map[string]string{"app.yaml": "# " + text}))
	}
	push("v1")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", w.Key("app"))
	source.Object["spec"] = map[string]any{"interval": "1h", "insecure": true, "url": registry.URL("app"), "ref": map[string]any{"tag": "latest"}}
	w.Create(source)
	revision := func() string {
		value, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision")
		return value
	}
	changes := func(from string) {
		w.Eventually("the source is fetched", func() error {
			if err := w.TryRead(source); err != nil || revision() == from {
				return fmt.Errorf("the source is at %q: %w", revision(), err)
			}
			return nil
		})
	}
	changes("")
	w.ClosedGate("freeze", v1alpha1.TargetReference{Kind: "OCIRepository", Name: "*"})
	w.isHeldBy(source, "freeze")
	first := revision()
	push("v2")
	if all := w.waits(); len(all) != 1 || all[0].Reason != explain.NotFetched || all[0].Revision != first || all[0].Waits != "" {
		t.Errorf("%+v", all)
	}
	if got := w.gate("pending"); !strings.Contains(got.out, first[:len("latest@sha256:12345678")]+"   not fetched") {
		t.Errorf("%+v", got)
	}
	w.open("freeze")
	w.Annotate(source, fluxmeta.ReconcileRequestAnnotation, "now")
	changes(first)
	if all := w.waits("--all"); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

func TestPendingShowsSinceWhenRenewalIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dueCertificate("www")
	if all := w.waits(); len(all) != 1 || all[0].Reason != explain.RenewalDue || time.Since(all[0].Since.Time).Round(24*time.Hour) != 240*time.Hour {
		t.Errorf("%+v", all)
	}
}

// dueCertificate creates a Certificate that a Gate holds. It expires in twenty days and was due ten days ago.
func (w *world) dueCertificate(name string) *unstructured.Unstructured {
	w.Helper()
	c := harness.Object("cert-manager.io/v1", "Certificate", w.Key(name))
	c.Object["spec"] = map[string]any{"secretName": name, "dnsNames": []any{"example.com"}, "issuerRef": map[string]any{"name": "ca"}}
	w.Create(c)
	expires := time.Now().Add(20 * 24 * time.Hour).UTC()
	w.sets(c, map[string]any{
		"notBefore": expires.Add(-90 * 24 * time.Hour).Format(time.RFC3339), "notAfter": expires.Format(time.RFC3339),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339)}},
	})
	w.ClosedGate("certificates", v1alpha1.TargetReference{Kind: "Certificate", Name: "*"})
	w.isHeldBy(c, "certificates")
	return c
}

func TestPendingSelectsByLabelsAndPrintsNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	apps := w.heldApps()
	w.Must(w.Merge(apps, `{"metadata":{"labels":{"team":"payments"}}}`))
	for selector, want := range map[string]string{"team=payments": "kustomization.kustomize.toolkit.fluxcd.io/apps\n", "team!=payments": ""} {
		if got := w.gate("pending", "-l", selector, "-o", "name"); got != (output{want, "", 0}) {
			t.Errorf("%s: %+v", selector, got)
		}
	}
	if got := w.gate("pending", "-A", "-l", "team=payments", "-o", "jsonpath={.kind}/{.items[0].kind}/{.items[0].metadata.name}"); got.out != "PendingTargetList/PendingTarget/apps" {
		t.Errorf("%+v", got)
	}
	if got := w.gate("pending", "apps"); got.code != 2 || !strings.Contains(got.errOut, "takes no names") {
		t.Errorf("%+v", got)
	}
	if got := w.gate("pending", "-l", "a in b"); got.code != 2 || got.out != "" || strings.Count(got.errOut, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestPendingShowsChartOfHelmRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chart := harness.Object("source.toolkit.fluxcd.io/v1", "HelmChart", w.Key(w.Namespace+"-shop"))
	chart.Object["spec"] = map[string]any{"chart": "shop", "version": "6.x", "interval": "1h", "suspend": true, "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}
	w.Create(chart)
	w.sets(chart, map[string]any{"artifact": map[string]any{
		"revision": "6.1.0", "lastUpdateTime": time.Now().UTC().Format(time.RFC3339), "url": "http://localhost/a", "path": "a", "digest": "sha256:" + strings.Repeat("0", 64),
	}})
	release := harness.Object("helm.toolkit.fluxcd.io/v2", "HelmRelease", w.Key("shop"))
	release.Object["spec"] = map[string]any{"interval": "1h", "chart": map[string]any{"spec": map[string]any{
		"chart": "shop", "version": "6.x", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"},
	}}}
	w.Create(release)
	w.sets(release, map[string]any{"history": []any{map[string]any{
		"chartName": "shop", "chartVersion": "6.0.0", "configDigest": "a", "digest": "a", "firstDeployed": "2026-01-01T00:00:00Z", "lastDeployed": "2026-01-01T00:00:00Z",
		"name": "shop", "namespace": w.Namespace, "status": "deployed", "version": int64(1),
	}}})
	w.ClosedGate("production", v1alpha1.TargetReference{Kind: "HelmRelease", Name: "*"})
	w.isHeldBy(release, "production")
	if all := w.waits(); len(all) != 1 || all[0].Reason != explain.NewRevision || all[0].Revision != "6.0.0" || all[0].Waits != "6.1.0" {
		t.Errorf("%+v", all)
	}
}

// sets writes the status of an object, as its controller does.
func (w *world) sets(obj *unstructured.Unstructured, status map[string]any) {
	w.Helper()
	before := obj.DeepCopy()
	obj.Object["status"] = status
	w.Must(w.Client.Status().Patch(w.Context(), obj, client.MergeFrom(before)))
}

func TestPendingOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	w.dueCertificate("www")
	w.shows("pending")
}
