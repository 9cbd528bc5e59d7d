// Package waves releases Kustomizations in waves, with the built gating-controller, which is killed repeatedly, and the real
// kustomize-controller.
package waves

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var (
	cluster   *harness.ControlPlane
	artifacts *harness.ArtifactServer
	gating    *harness.Process
)

var kustomizations = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (stop func() error, err error) {
	artifacts = harness.StartArtifactServer()
	var flux *harness.Process
	stop = func() error {
		err := errors.Join(gating.Stop(), flux.Stop())
		artifacts.Stop()
		return err
	}
	if err := cluster.Install(ctx); err != nil {
		return stop, err
	}
	if flux, err = cluster.StartKustomizeController(ctx); err != nil {
		return stop, err
	}
	gating, err = cluster.StartGatingController(ctx)
	return stop, err
}

// world is a namespace with Kustomizations of one artifact. Each applies a separate folder.
type world struct {
	*harness.World
	mu sync.Mutex
	// observed has all observed versions of the Kustomizations, in the order in which they were stored.
	observed []version
}

// version is an observed version of a Kustomization.
type version struct {
	at         time.Time
	name, wave string
	suspended  bool
	ready      target.Readiness
	revision   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: harness.NewWorld(t, cluster)}
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating} })
	return w
}

// restart kills the controller and starts it again.
func (w *world) restart() {
	w.Helper()
	w.Must(gating.Kill())
	var err error
	gating, err = cluster.StartGatingController(w.Context())
	w.Must(err)
}

// follow records all versions of the Kustomizations from now on.
func (w *world) follow() {
	w.Helper()
	w.Follow(kustomizations, func(u *unstructured.Unstructured) {
		s := version{at: time.Now(), name: u.GetName(), wave: u.GetLabels()["wave"], suspended: harness.Suspended(u)}
		s.ready, _ = target.ReadinessOf(&target.Object{Unstructured: *u})
		s.revision, _, _ = unstructured.NestedString(u.Object, "status", "lastAppliedRevision")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.observed = append(w.observed, s)
	})
}

// released counts the Kustomizations of a wave that were released.
func (w *world) released(wave string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := map[string]bool{}
	for _, s := range w.observed {
		if s.wave == wave && !s.suspended {
			names[s.name] = true
		}
	}
	return len(names)
}

// kustomization creates a Kustomization in a wave that applies a folder of the artifact app.
func (w *world) kustomization(name, wave string, change ...func(spec map[string]any)) {
	w.Helper()
	obj := harness.Object(kustomizations.GroupVersion().String(), kustomizations.Kind, w.Key(name))
	spec := map[string]any{
		"interval": "1h", "retryInterval": "2s", "timeout": "3s", "prune": true, "path": "./" + name,
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": "app"},
	}
	for _, c := range change {
		c(spec)
	}
	obj.Object["spec"] = spec
	obj.SetLabels(map[string]string{"wave": wave})
	w.Create(obj)
}

// configMap returns the content of a folder.
func (w *world) configMap(name, revision string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\ndata:\n  revision: %s\n", name, w.Namespace, revision)
}

// publish publishes a revision of the artifact app with folders that have a ConfigMap each.
func (w *world) publish(revision string, names ...string) {
	w.Helper()
	files := map[string]string{}
	for _, name := range names {
		files[name+"/app.yaml"] = w.configMap(name, revision)
	}
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("app"), revision, files))
}

// open requests that a Gate open.
func (w *world) open(g *v1alpha1.Gate) {
	w.Helper()
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339))
}

// waits waits until the waves of a Gate meet a condition.
func (w *world) waits(g *v1alpha1.Gate, what string, is func(*v1alpha1.Gate, *v1alpha1.WavesStatus) bool) {
	w.Helper()
	w.Eventually(what, func() error {
		if err := w.TryRead(g); err != nil {
			return err
		}
		status := &v1alpha1.WavesStatus{}
		if g.Status.Release != nil && g.Status.Release.Waves != nil {
			status = g.Status.Release.Waves
		}
		if !is(g, status) {
			return fmt.Errorf("%+v, %+v", status, g.Status.Conditions)
		}
		return nil
	})
}

// app reads a Kustomization.
func (w *world) app(name string) *unstructured.Unstructured {
	w.Helper()
	obj := harness.Object(kustomizations.GroupVersion().String(), kustomizations.Kind, w.Key(name))
	w.Read(obj)
	return obj
}
