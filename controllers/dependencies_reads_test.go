package controllers_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// counted counts what is read in full.
type counted struct {
	view.TargetReader
	reads atomic.Int64
	// before is called before a read.
	before func()
}

func (c *counted) Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	c.reads.Add(1)
	if c.before != nil {
		c.before()
	}
	return c.TargetReader.Read(ctx, adapter, key)
}

func TestWhatDidNotChangeIsNotReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := &counted{TargetReader: w.Targets}
	w.Targets = reads
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	w.reports(stage, "True", "Succeeded", "")
	g := w.watchingGate(staging("'promote' in dep.metadata.annotations || !has(self.metadata.annotations)"))
	w.Reconcile(g)
	w.expectOpened(g, app)
	w.Reconcile(g) // the Gate was written since
	for _, step := range []struct {
		what   string
		change func()
		want   int64
		open   bool
	}{
		{"nothing changed", func() { w.In(time.Minute) }, 0, true},
		{"the object changed", func() { w.reports(stage, "False", "BuildFailed", "") }, 1, true},
		{"nothing changed since", func() { w.In(2 * time.Minute) }, 0, true},
		{"the Gate changed, which the expression reads, and was written twice", func() { w.Annotate(g, "some", "thing") }, 3, false},
		{"nothing is written any more", func() {}, 0, false},
		{"it waits", func() { w.In(3 * time.Minute) }, 0, false},
		{"the object lets it open", func() { w.PatchAsFlux(stage, `{"metadata":{"annotations":{"promote":"yes"}}}`) }, 3, true},
		{"all is quiet", func() { w.In(4 * time.Minute) }, 0, true},
		{"what was seen is old", func() { w.In(4*time.Minute + 10*time.Minute) }, 1, true},
		{"the clock is set back", func() { w.In(0) }, 1, true},
	} {
		step.change()
		reads.reads.Store(0)
		w.Reconcile(g)
		if got := reads.reads.Load(); got != step.want {
			t.Errorf("%s: %d reads, want %d", step.what, got, step.want)
		}
		if isOpened(g) != step.open {
			t.Errorf("%s: %s", step.what, opened(g))
		}
	}
}

// An object may take seconds to be read, during which Flux can remove the annotation of a request, or the process can end.
func TestARequestIsRecordedBeforeTheDependenciesAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stage := w.NewKustomization("staging", nil)
	reads := &counted{TargetReader: w.Targets}
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

// A cause that keeps a Gate closed may be remembered, one that opens it is read.
func TestAGateOpensOnWhatWasReadJustNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := &counted{TargetReader: w.Targets}
	w.Targets = reads
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	w.reports(stage, "True", "Succeeded", "")
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps")}, DependsOn: []v1alpha1.DependencyReference{staging()},
		OpenPeriods: []v1alpha1.Period{dated("nights", 5*time.Minute, hours(1))},
	})
	w.Reconcile(g)
	w.Reconcile(g)
	reads.reads.Store(0)
	w.In(4 * time.Minute)
	w.Reconcile(g)
	if got := reads.reads.Load(); got != 0 {
		t.Errorf("%d reads while it is closed anyway", got)
	}
	w.In(5 * time.Minute)
	w.Reconcile(g)
	w.expectOpened(g, app)
	if got := reads.reads.Load(); got != 1 {
		t.Errorf("%d reads to open", got)
	}
}

// slow is a reader that takes a while.
type slow struct {
	view.TargetReader
	read func(context.Context)
}

func (s *slow) Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	s.read(ctx)
	return s.TargetReader.Read(ctx, adapter, key)
}

// Before a Gate opens, dependencies from the cache are read again. Both reads together must end when the Gate is due to close.
func TestAllReadsOfDependenciesEndWhenTheGateIsDueToClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _, stage := w.openUntilAFreeze()
	other := w.NewKustomization("other", nil)
	w.reports(other, "True", "Succeeded", "")
	w.Edit(g, func() {
		g.Spec.DependsOn = append(g.Spec.DependsOn, v1alpha1.DependencyReference{Kind: other.GetKind(), Name: other.GetName()})
	})
	w.Reconcile(g)
	w.In(hours(1) - time.Minute)
	w.Reconcile(g)
	w.In(hours(1) - 8*time.Second)
	var mu sync.Mutex
	var left []time.Duration
	w.Targets = &slow{w.Targets, func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		deadline, _ := ctx.Deadline()
		left = append(left, time.Until(deadline))
		w.In(hours(1) - 2*time.Second)
	}}
	w.PatchAsFlux(stage, `{"metadata":{"annotations":{"changed":"yes"}}}`)
	w.Edit(g, func() { g.Spec.Window = duration(hours(3)) })
	_, err := w.Reconcilers().Gates.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
	w.Must(err)
	if len(left) < 3 || left[0] > 8*time.Second || left[len(left)-1] > 2*time.Second {
		t.Errorf("the reads had %v left", left)
	}
}

// openUntilAFreeze returns a Gate that closes in an hour for a freeze, what it
// governs and what it watches.
func (w *world) openUntilAFreeze() (g *v1alpha1.Gate, app, stage *target.Object) {
	w.Helper()
	app, stage = w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	w.reports(stage, "True", "Succeeded", "")
	g = w.watchingGate(staging())
	w.Edit(g, func() {
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: dated("freeze", hours(1), hours(2))}}
	})
	w.Reconcile(g)
	w.expectOpened(g, app)
	return g, app, stage
}

// A close that is due holds first and looks afterwards.
func TestACloseThatIsDueDoesNotWaitForWhatIsWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := &counted{TargetReader: w.Targets}
	w.Targets = reads
	g, app, stage := w.openUntilAFreeze()
	w.reports(stage, "False", "BuildFailed", "no such file")
	w.In(hours(1))
	held := false
	reads.before = func() { held = w.Suspended(app) }
	w.Reconcile(g)
	if !held {
		t.Error("it looks before it holds")
	}
	w.expectWaiting(g, app, "BuildFailed: no such file") // and then says all that it knows
	if seen := g.Status.Dependencies; len(seen) != 1 || seen[0].Ready || !seen[0].Since.Time.Equal(start.Add(hours(1))) {
		t.Errorf("status.dependencies is %+v", seen)
	}
}

// A read that hangs when a close falls due is given up at that instant.
func TestAReadThatHangsDoesNotOutlastTheClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, app, stage := w.openUntilAFreeze()
	reads := &counted{TargetReader: w.Targets}
	var once atomic.Bool
	reads.before = func() {
		w.In(hours(1)) // the close falls due meanwhile
		if !once.Swap(true) && w.Suspended(app) {
			t.Error("held before the close is due")
		}
	}
	w.Targets = reads
	w.reports(stage, "True", "Succeeded", "again")
	w.In(hours(1) - time.Millisecond)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if got := opened(g); !strings.HasPrefix(got, "False ClosePeriod: ") {
		t.Error(got)
	}
}
