package controllers_test

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// hooked calls a hook before each read of a whole object.
type hooked struct {
	view.TargetReader
	before func()
}

func (c *hooked) Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if c.before != nil {
		c.before()
	}
	return c.TargetReader.Read(ctx, adapter, key)
}

// Reading an object may take seconds, during which Flux can remove the annotation of a request, or the process can end. So requests are
// recorded, and targets are held, before the dependencies are read.
func TestDependenciesAreReadLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := &hooked{TargetReader: w.Targets}
	w.Targets = reads
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	w.reports(stage, "True", "Succeeded", "")
	g := w.watchingGate(staging())
	w.Edit(g, func() { g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: dated("freeze", hours(1), hours(3))}} })
	w.Reconcile(g)
	w.expectOpened(g, app)
	w.reports(stage, "False", "BuildFailed", "no such file")
	w.In(hours(1))
	held := false
	reads.before = func() { held = w.Suspended(app) }
	w.Reconcile(g)
	if !held {
		t.Error("the dependencies are read before the target is held")
	}
	w.expectWaiting(g, app, "BuildFailed: no such file") // the status has both
	if seen := g.Status.Dependencies; len(seen) != 1 || seen[0].Ready || !seen[0].Since.Time.Equal(start.Add(hours(1))) {
		t.Errorf("status.dependencies is %+v", seen)
	}

	w.reports(stage, "True", "Succeeded", "")
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "tomorrow")
	var recorded []string
	reads.before = func() {
		for _, e := range w.GetGate(client.ObjectKeyFromObject(g)).Status.History {
			recorded = append(recorded, e.Reason)
		}
	}
	w.Reconcile(g)
	if !slices.Contains(recorded, v1alpha1.RequestRefusedReason) {
		t.Errorf("recorded when the object was read: %q", recorded)
	}

	// An object that cannot be read closes the Gate and is retried.
	w.Open(g, w.In(hours(2)))
	w.Reconcile(g)
	w.expectOpened(g, app)
	reads.before = nil
	w.Targets = unreadable{w.Targets, map[string]error{"staging": errBroken}}
	w.reports(stage, "True", "Succeeded", "again")
	if result, err := w.Try(g); err == nil || result.RequeueAfter <= 0 {
		t.Errorf("not retried: %v, %v", result, err)
	}
	w.ExpectHeld(app, g)
	equal(t, failuresOf(g), []string{"Kustomization/staging ReadFailed"})
	w.Targets = reads
	w.Reconcile(g)
	w.expectOpened(g, app)
	expectNone(t, failuresOf(g))
}
