package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// held waits until the Kustomization of the apps is held, or released.
func (w *world) held(m *member, want bool) {
	w.Helper()
	apps := w.in[m].Kustomization("apps")
	w.in[m].Eventually(fmt.Sprintf("apps of %s are held: %t", m.name, want), func() error {
		if w.in[m].Read(apps); harness.Suspended(apps) != want {
			return fmt.Errorf("suspended: %t", !want)
		}
		return nil
	})
}

// runs returns an error unless a cluster has a version of the app.
func (w *world) runs(m *member, version string) error {
	app := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: namespace}}
	if w.in[m].Read(app); app.Data["is"] != version {
		return fmt.Errorf("%s runs %s, want %s", m.name, app.Data["is"], version)
	}
	return nil
}

// edit replaces a text in a file of the sample.
func (w *world) edit(path, before, after string) {
	w.Helper()
	content := string(must(os.ReadFile(filepath.Join(w.dir, path))))
	if !strings.Contains(content, before) {
		w.Fatalf("%s has no %q", path, before)
	}
	w.write(path, strings.ReplaceAll(content, before, after))
}

// After a disconnection, a cluster gets the freeze and the revision that it must hold back as one revision.
func TestFreezePrecedesConcurrentRevision(t *testing.T) {
	w := newWorld(t)
	git := harness.StartArtifactServer()
	t.Cleanup(git.Stop)
	w.bootstrap(git)
	w.edit("gates/base/gate.yaml", "2086-12-19", time.Now().UTC().Add(-24*time.Hour).Format("2006-01-02"))
	w.edit("apps/config.yaml", "is: v1", "is: v2")
	w.publish(git, "v2")
	for _, m := range members {
		w.in[m].Opened("fleet", metav1.ConditionFalse)
		w.held(m, true)
	}
	w.in[other].Throughout(3*time.Second, "the new revision is not applied", func() error { return w.runs(other, "v1") })
	if err := w.runs(canary, "v1"); err != nil {
		t.Error(err)
	}

	w.edit("gates/canary/kustomization.yaml", "2087-01-03", time.Now().UTC().Format("2006-01-02"))
	w.publish(git, "v3")
	w.opened(canary)
	w.in[canary].Eventually("the canary is released first", func() error { return w.runs(canary, "v2") })
	w.held(other, true)
	if err := w.runs(other, "v1"); err != nil {
		t.Error(err)
	}
}

func TestFluxRevertsEditInOneCluster(t *testing.T) {
	w := newWorld(t)
	git := harness.StartArtifactServer()
	t.Cleanup(git.Stop)
	w.bootstrap(git)
	w.in[other].EditGate(w.in[other].ReadGate("fleet"), func(g *v1alpha1.Gate) { g.Spec.ClosePeriods = nil })
	w.in[other].Annotate(w.in[other].Kustomization("gates"), "reconcile.fluxcd.io/requestedAt", time.Now().Format(time.RFC3339Nano))
	w.in[other].Eventually("the freeze is restored", func() error {
		if periods := w.in[other].ReadGate("fleet").Spec.ClosePeriods; len(periods) != 1 {
			return fmt.Errorf("the periods are %v", periods)
		}
		return nil
	})
}
