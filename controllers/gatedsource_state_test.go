package controllers_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/gatedsource"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// sourcesNotRead is a cache that has no source yet.
type sourcesNotRead struct{ view.TargetReader }

// Get implements TargetReader.
func (c sourcesNotRead) Get(ctx context.Context, key target.Key) (*target.Object, error) {
	if key.Kind == "GitRepository" {
		return nil, view.ErrNotRead
	}
	return c.TargetReader.Get(ctx, key)
}

func TestUnreadableOrUnwritableGatedSource(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})

	// Its sources have not been read yet.
	targets := f.Targets
	f.Targets = sourcesNotRead{targets}
	result, err := f.Reconcilers().GatedSources.Reconcile(f.Context(), f.request())
	if f.Must(err); result.RequeueAfter != view.CacheDelay {
		t.Errorf("it is requeued after %s", result.RequeueAfter)
	}
	if f.Read(f.g); len(f.g.Status.Conditions) > 0 {
		t.Errorf("it has the conditions %+v", f.g.Status.Conditions)
	}
	f.Targets = targets

	// It belongs to another shard.
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{gatedsource.ShardLabel: "shard1"}})
	f.Must(err)
	f.Shard = selector
	f.looks()
	f.isAt("")
	f.Edit(f.g, func() { f.g.Labels = map[string]string{gatedsource.ShardLabel: "shard1"} })
	f.looks()
	f.isAt("a")

	// The status of the Gate reports the failed write.
	g := f.Gate("days", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{allGatedSources}})
	f.looks(g)
	f.push("b")
	f.Writes.Before = failing("GitRepository/apps-gated")
	if err := f.tries(); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
	_, _ = f.Try(g)
	if failures := g.Status.TargetFailures(); len(failures) != 1 || failures[0].Kind != v1alpha1.GatedSourceKind || failures[0].Reason != v1alpha1.WriteFailedReason {
		t.Errorf("failures: %+v", failures)
	}
}
