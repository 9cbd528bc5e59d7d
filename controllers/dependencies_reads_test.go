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

// Reading an object may take seconds, during which Flux can remove the annotation of a request, or the process can end.
func TestRequestIsRecordedBeforeReadsOfDependencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stage := w.NewKustomization("staging", nil)
	reads := &hooked{TargetReader: w.Targets}
	w.Targets = reads
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps")},
		DependsOn: []v1alpha1.DependencyReference{{Kind: stage.GetKind(), Name: stage.GetName()}}})
	w.Reconcile(g)
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "tomorrow")
	w.PatchAsFlux(stage, `{"metadata":{"annotations":{"changed":"yes"}}}`)
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
}

// When a close is due, the targets are held before the dependencies are read.
func TestDueCloseDoesNotWaitForDependencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := &hooked{TargetReader: w.Targets}
	w.Targets = reads
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	w.reports(stage, "True", "Succeeded", "")
	g := w.watchingGate(staging())
	w.Edit(g, func() { g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: dated("freeze", hours(1), hours(2))}} })
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
}
