package cli

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/dryrun"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// pinned is a world with an OCI repository, a GatedSource that has pinned its first revision, and a Kustomization that applies it.
type pinned struct {
	*world
	push func(text string)
	g    *v1alpha1.GatedSource
}

func newPinned(t *testing.T) *pinned {
	t.Helper()
	p := &pinned{world: newWorld(t)}
	registry := harness.StartRegistry()
	t.Cleanup(registry.Stop)
	p.push = func(text string) {
		p.Must(registry.Push("app", "latest", map[string]string{"app.yaml": strings.Replace(configMap("app", text), "name: app", "name: app, namespace: "+p.Namespace, 1)}))
		source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", p.Key("app"))
		if p.g != nil {
			p.Annotate(source, fluxmeta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano))
		}
	}
	p.push("one")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", p.Key("app"))
	source.Object["spec"] = map[string]any{"interval": "1h", "insecure": true, "url": registry.URL("app"), "ref": map[string]any{"tag": "latest"}}
	p.Create(source)
	p.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "OCIRepository", Name: "app"},
	}}
	p.Create(p.g)
	apps := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", p.Key("apps"))
	apps.Object["spec"] = map[string]any{"interval": "1h", "prune": true, "path": "./", "retryInterval": "1s", "sourceRef": map[string]any{"kind": "OCIRepository", "name": "app-gated"}}
	p.Create(apps)
	p.Eventually("the first revision is applied", func() error {
		return p.TryRead(harness.Object("v1", "ConfigMap", p.Key("app")))
	})
	return p
}

// waitsFor waits until the condition Approved has the reason.
func (p *pinned) waitsFor(g *v1alpha1.GatedSource, reason string) {
	p.Helper()
	p.Eventually("the condition has the reason", func() error {
		p.Read(g)
		if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.ApprovedCondition); c == nil || c.Reason != reason {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
}

// address is the address of source-controller.
func (p *pinned) address() string {
	p.Helper()
	source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", p.Key("app"))
	p.Read(source)
	artifact, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "url")
	at, err := url.Parse(artifact)
	p.Must(err)
	return "http://" + at.Host
}

func TestPendingShowsChangesIfPinMoved(t *testing.T) {
	t.Parallel()
	p := newPinned(t)
	first := p.readPinned()
	p.ClosedGate("nights", v1alpha1.TargetReference{Kind: v1alpha1.GatedSourceKind, Name: "app"})
	p.push("two")
	p.waitsFor(p.g, v1alpha1.GateClosedReason)
	waits := p.g.Status.Pending.Revision
	release := harness.Object("helm.toolkit.fluxcd.io/v2", "HelmRelease", p.Key("chart"))
	release.Object["spec"] = map[string]any{"interval": "1h", "chartRef": map[string]any{"kind": "OCIRepository", "name": "app-gated"}}
	p.Create(release)
	got := p.gate("pending", "--diff", "--source-address", p.address())
	for _, want := range []string{
		"GatedSource/app in " + p.Namespace + ": " + short(first) + " -> " + short(waits) + "\n",
		"  Kustomization/apps in " + p.Namespace + ", at ", "    ConfigMap/" + p.Namespace + "/app configured\n      /data/key: \"one\" -> \"two\"\n",
		"  HelmRelease/chart in " + p.Namespace + "\n    unknown: charts are not rendered\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the output lacks %q: %+v", want, got)
		}
	}
	if got.code != exitIncomplete {
		t.Errorf("exit code %d", got.code)
	}
	p.Must(p.Client.Delete(p.Context(), release))
	all := listOf[struct {
		Waits string
		Diff  struct {
			Users []struct {
				Target  struct{ Kind, Name string }
				Changes []dryrun.Change
			}
		}
	}](p.world, "pending", "--diff", "--source-address", p.address())
	if len(all) != 1 || all[0].Waits != waits || len(all[0].Diff.Users) != 1 || all[0].Diff.Users[0].Target.Name != "apps" || len(all[0].Diff.Users[0].Changes) != 1 {
		t.Errorf("%+v", all)
	}
	if now := p.readPinned(); now != first {
		t.Errorf("the pin is at %s", now)
	}
	p.open("nights")
	p.waitsFor(p.g, v1alpha1.UpToDateReason)
	if got := p.gate("pending"); got != (output{"", "Nothing waits.\n", 0}) {
		t.Errorf("%+v", got)
	}
	history := p.gate("history", "source/app")
	if lines := strings.Split(strings.TrimSpace(history.out), "\n"); history.code != 0 || len(lines) != 3 || !strings.Contains(lines[1], short(waits)+"   "+short(first)) || !strings.Contains(lines[2], short(first)) {
		t.Errorf("%+v", history)
	}
	if all := listOf[v1alpha1.Promotion](p.world, "history", "source/app"); len(all) != 2 || all[0].Revision != waits || all[0].From != first || all[0].Reason != v1alpha1.GateOpenedReason {
		t.Errorf("%+v", all)
	}
	p.needs("history source/NAME", func(who *world) output { return who.gate("history", "source/app") })
	p.expect(p.gate("history", "source/nothing"), exitError, "", `there is no gatedsource "nothing"`)
}

func TestPendingListsObjectsWaitingForApproval(t *testing.T) {
	t.Parallel()
	p := newPinned(t)
	g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "reviewed"}, Spec: v1alpha1.GatedSourceSpec{
		SourceRef: v1alpha1.PinnableReference{Kind: "OCIRepository", Name: "app"}, Approvals: &v1alpha1.ApprovalRule{Required: 2},
	}}
	p.Create(g)
	p.waitsFor(g, v1alpha1.WaitingApprovalReason)
	got := p.gate("pending", "--diff", "--source-address", p.address())
	p.expect(got, 0, "GatedSource/reviewed   approval 0 of 2   -", "")
	p.expect(got, 0, "  nothing would change: no Kustomization or HelmRelease here refers to the pinned source\n", "")
	if all := p.waits(); len(all) != 1 || all[0].Approvals == nil || all[0].Approvals.Needs != 2 || all[0].Waits != g.Status.Pending.Revision {
		t.Errorf("%+v", all)
	}
}

// readPinned returns the pinned revision.
func (p *pinned) readPinned() string {
	p.Helper()
	p.Read(p.g)
	if p.g.Status.Pinned == nil {
		return ""
	}
	return p.g.Status.Pinned.Revision
}

// short returns a revision as in tables.
func short(revision string) string { return revision[:len("latest@sha256:12345678")] }
