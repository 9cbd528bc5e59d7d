package shards

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func followsAcross(t *testing.T) {
	w := newWorld(t)
	g, paced := w.gate(one, "named", v1alpha1.StateClosed), w.gate(rest, "paced", v1alpha1.StateOpened)
	w.EditGate(paced, func(g *v1alpha1.Gate) {
		g.Spec.Targets = []v1alpha1.TargetReference{{Kind: v1alpha1.GatedSourceKind, Name: v1alpha1.AnyName}}
		g.Spec.Release = &v1alpha1.ReleasePolicy{PerMinute: 60}
	})
	w.ready(g, paced)
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps"))
	source.Object["spec"] = map[string]any{"url": "https://git.example.com/apps", "interval": "1m", "ref": map[string]any{"branch": "main"}}
	w.Create(source)
	source.Object["status"] = map[string]any{"observedGeneration": source.GetGeneration(), "artifact": map[string]any{
		"revision": "main@sha1:" + strings.Repeat("a", 40), "digest": "sha256:" + strings.Repeat("0", 64), "path": "p", "url": "http://source/p",
		"lastUpdateTime": "2026-11-23T12:00:00Z",
	}}
	w.Must(w.Client.Status().Update(w.Context(), source))
	follower := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "apps", Annotations: map[string]string{v1alpha1.GatesAnnotation: "named"}}}
	follower.Spec.SourceRef = v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}
	w.Create(follower)
	pinned := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps-gated"))
	w.Eventually("the revision waits", func() error {
		if err := w.TryRead(follower); err != nil {
			return err
		}
		if reason := conditions.GetReason(follower, v1alpha1.ApprovedCondition); reason != v1alpha1.GateClosedReason {
			return fmt.Errorf("approved is %q", reason)
		}
		return nil
	})
	if err := w.TryRead(pinned); !apierrors.IsNotFound(err) {
		t.Fatalf("the pinned source exists while the gate is closed: %v", err)
	}
	written := w.Record(v1alpha1.GroupVersion.WithKind(v1alpha1.GatedSourceKind))
	w.Throughout(patience, "the revision takes no slot of the open gate", func() error {
		if n := len(written.All()); n > 0 {
			return fmt.Errorf("%d versions were written", n)
		}
		return nil
	})
	w.open(g)
	w.ready(g)
	w.Annotate(follower, meta.ReconcileRequestAnnotation, "now")
	w.Eventually("the revision is promoted", func() error { return w.TryRead(pinned) })
}
