package cli

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// inWave creates a Kustomization in a wave that applies a folder of the artifact.
func (w *world) inWave(name, wave string) {
	w.Helper()
	obj := w.Kustomization(name)
	obj.SetLabels(map[string]string{"wave": wave})
	obj.Object["spec"] = map[string]any{
		"interval": "1h", "retryInterval": "1s", "prune": true, "path": "./" + name,
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "apps"},
	}
	w.Create(obj)
}

// folders publishes a revision of the artifact with one object per folder. The object of the canary has a kind.
func (w *world) folders(revision, kind string) {
	w.Helper()
	files := map[string]string{}
	for name, kind := range map[string]string{"search": kind, "shop": "ConfigMap", "pay": "ConfigMap"} {
		files[name+"/app.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\ndata: {revision: %s}\n", kind, name, w.Namespace, revision)
	}
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("apps"), revision, files))
}

// TestWavesPage runs the page. The output of a command may take a moment.
func TestWavesPage(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t), t.TempDir()
	w.folders("v1", "ConfigMap")
	for name, wave := range map[string]string{"search": "canary", "shop": "europe", "pay": "us"} {
		w.inWave(name, wave)
	}
	w.Eventually("all Kustomizations have applied v1", func() error {
		if got := w.shell("kubectl get kustomizations -n " + w.Namespace); strings.Count(got.out, "Applied revision: v1") != 3 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	for _, b := range w.blocksOf("guides/waves.md") {
		for _, c := range docs.Commands(b.Text) {
			w.follows(folder, markdown.Block{Language: b.Language, Text: "$ " + c.Text + "\n" + c.Prints})
			if strings.Contains(c.Text, " apply ") {
				w.Decided(w.ReadGate("rollout"))
				w.folders("v2", "ConfigMapp")
			}
		}
		if b.Language == "yaml" {
			w.writes(folder, b)
		}
	}
}

func TestProceedNeedsWaitingRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Decided(w.Gate("all-at-once", v1alpha1.GateSpec{Default: v1alpha1.StateOpened}))
	policy := &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{{Name: "one", MatchLabels: map[string]string{"wave": "one"}}}}
	w.Create(w.Kustomization("app"))
	spec := v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Release: policy, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}}
	w.Decided(w.Gate("closed", spec))
	spec.Default, spec.Targets = v1alpha1.StateOpened, nil
	g := w.Gate("released", spec)
	w.Eventually("the gate has nothing to release", func() error {
		w.Read(g)
		if g.Status.Release == nil || g.Status.Release.Waves == nil {
			return fmt.Errorf("%+v", g.Status)
		}
		return nil
	})
	for name, want := range map[string]string{
		"all-at-once": "it has no spec.release.waves, so no wave is waiting",
		"closed":      "it is not open, so there is no release to continue; to open it: kubectl gate open closed -n " + w.Namespace,
		"released":    "all waves are released, so no wave is waiting",
		"missing":     "not found",
	} {
		if name == "missing" {
			w.expect(w.gate("proceed", name), exitError, "", "missing")
			continue
		}
		w.expect(w.gate("proceed", name), exitError, "", fmt.Sprintf("error: %s/%s: %s\n", w.Namespace, name, want))
	}
	w.expect(w.gate("proceed"), exitError, "", "error: name a gate\n")

	// The wave matches nothing: the release stops, and continues when a user proceeds.
	w.expect(w.gate("open", "closed"), 0, "", "")
	w.Eventually("the release has stopped", func() error {
		if got := w.gate("list", "closed"); !strings.Contains(got.out, ", stopped at wave one") {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	going := "continuing although wave one matches no target: compare its labels with those of the targets, or remove it"
	w.expect(w.gate("proceed", "closed", "--dry-run=server"), 0, going, "")
	w.expect(w.as("sees-nothing").gate("proceed", "closed"), exitError, "", `that needs the verb "get", which the ClusterRole gate-opener has`)
	w.expect(w.gate("proceed", "closed", "--reason", "it is empty for now"), 0, going, "")
	w.Read(g)
	released := w.ReadGate("closed")
	if released.Annotations[v1alpha1.ProceedReasonAnnotation] != "it is empty for now" || !released.Status.Release.Waves.FaultsAccepted {
		t.Errorf("%v, %+v", released.Annotations, released.Status.Release.Waves)
	}
	w.Opened("closed", metav1.ConditionTrue)
}
