package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
)

func TestAGateIsClosedWhileWhatItWatchesIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	g := w.watchingGate(staging())
	w.Reconcile(g)
	w.expectWaiting(g, app, "has no condition Ready")
	if got := w.Events.Take("Gate/production"); !slices.Equal(got, []string{
		"Normal Gate/production DependencyNotReady: Gate closed, Kustomization '" + w.Namespace + "/staging' is not ready: has no condition Ready"}) {
		t.Errorf("events %q", got)
	}

	for i, step := range []struct {
		status, reason, message string
		// waits is why the Gate is closed, empty if it is open.
		waits string
		since float64
	}{
		{"True", "ReconciliationSucceeded", "Applied revision: v1", "", 1},
		{"Unknown", "Progressing", "Reconciliation in progress", "", 1},
		{"True", "ReconciliationSucceeded", "Applied revision: v2", "", 1},
		{"False", "BuildFailed", "kustomize build failed:\nno such file", "BuildFailed: kustomize build failed: no such file", 4},
		{"Unknown", "Progressing", "Reconciliation in progress", "Progressing: Reconciliation in progress", 4},
		{"False", "HealthCheckFailed", "timeout", "HealthCheckFailed: timeout", 4},
		{"True", "ReconciliationSucceeded", "Applied revision: v3", "", 7},
	} {
		w.In(hours(float64(i + 1)))
		w.reports(stage, step.status, step.reason, step.message)
		result := w.Reconcile(g)
		if step.waits == "" {
			w.expectOpened(g, app)
		} else {
			w.expectWaiting(g, app, step.waits)
		}
		seen := g.Status.Dependencies
		if len(seen) != 1 || seen[0].Name != "staging" || seen[0].Namespace != w.Namespace ||
			seen[0].Ready != (step.waits == "") || seen[0].Message != step.waits || !seen[0].Since.Time.Equal(start.Add(hours(step.since))) {
			t.Errorf("step %d: status.dependencies is %+v", i, seen)
		}
		if !conditions.IsReady(g) || len(g.Status.TargetFailures()) > 0 || result.RequeueAfter > 2*time.Minute {
			t.Errorf("step %d: %v, %v", i, conditions.Get(g, meta.ReadyCondition), result)
		}
	}
	// The object is deleted.
	w.PatchAsFlux(stage, `{"metadata":{"finalizers":["example.org/test"]}}`)
	w.Must(cluster.Client.Delete(w.Context(), &stage.Unstructured))
	w.Reconcile(g)
	w.expectWaiting(g, app, "is being deleted")
	w.PatchAsFlux(stage, `{"metadata":{"finalizers":null}}`)
	w.Reconcile(g)
	w.expectWaiting(g, app, "does not exist")
	w.Edit(g, func() { g.Spec.DependsOn = nil })
	w.Reconcile(g)
	if len(g.Status.Dependencies) > 0 {
		t.Errorf("status.dependencies is still %+v", g.Status.Dependencies)
	}
}

func TestAnExpressionReadsTheObjectInFullAndTheGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	g := w.watchingGate(staging("dep.spec.interval == self.metadata.annotations['interval'] && self.kind == 'Gate' && dep.kind == 'Kustomization'"))
	w.Reconcile(g)
	w.expectWaiting(g, app, "readyExpr: no such key: annotations")
	w.Annotate(g, "interval", "2h")
	w.Reconcile(g)
	w.expectWaiting(g, app, "readyExpr is false")
	w.PatchAsFlux(stage, `{"spec":{"interval":"2h"}}`)
	w.Reconcile(g)
	w.expectOpened(g, app)

	w.Edit(g, func() { g.Spec.DependsOn[0].ReadyExpr = "dep.status.observedGeneration ==" })
	w.Reconcile(g)
	if !strings.HasPrefix(opened(g), "True InvalidSpec: Gate stays opened") || !conditions.IsStalled(g) {
		t.Errorf("an expression that is not CEL: %s", opened(g))
	}
}

func TestWhatCannotBeWatchedIsNotReadyAndAFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		ref              v1alpha1.DependencyReference
		change           func(*world)
		failure, message string
		retried          bool
	}{
		"a kind that no adapter knows": {
			ref: v1alpha1.DependencyReference{Kind: "Deployment", Name: "web"}, failure: "Deployment/web UnsupportedKind", message: "kind Deployment is not supported"},
		"an object in another namespace": {
			ref:     v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", Namespace: "default"},
			failure: "Kustomization/staging AccessDenied", message: "runs with --no-cross-namespace-refs"},
		"an object in a namespace that is not watched": {
			ref: v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", Namespace: "default"},
			change: func(w *world) {
				w.AllowCrossNamespaceRefs, w.Namespaces = true, map[string]ctrlcache.Config{w.Namespace: {}}
			},
			failure: "Kustomization/staging AccessDenied", message: `the controller does not watch namespace "default": it runs with --watch-all-namespaces=false`},
		"a kind that is not installed": {
			ref: v1alpha1.DependencyReference{Kind: "Bucket", Name: "absent"},
			change: func(w *world) {
				w.Targets = unreadable{w.Targets, map[string]error{"absent": view.ErrNotInstalled}}
			},
			failure: "Bucket/absent CRDNotFound", message: "is not installed"},
		"an object that cannot be read": {
			ref: v1alpha1.DependencyReference{Kind: "Bucket", Name: "forbidden"},
			change: func(w *world) {
				w.Targets = unreadable{w.Targets, map[string]error{"forbidden": errBroken}}
			},
			failure: "Bucket/forbidden ReadFailed", message: "cannot be read: " + errBroken.Error(), retried: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app, stage := w.NewKustomization("apps", nil), w.NewKustomization("stage", nil)
			w.reports(stage, "True", "Succeeded", "")
			healthy := v1alpha1.DependencyReference{Kind: "Kustomization", Name: "stage"}
			if tc.change != nil {
				tc.change(w)
			}
			g := w.watchingGate(healthy, tc.ref)
			result, err := w.Try(g)
			if (err != nil) != tc.retried || result.RequeueAfter <= 0 {
				t.Errorf("error %v, %v", err, result)
			}
			w.ExpectHeld(app, g)
			if !strings.HasPrefix(opened(g), "False DependencyNotReady: ") || !strings.Contains(opened(g), tc.message) {
				t.Error(opened(g))
			}
			if got := failuresOf(g); !slices.Equal(got, []string{tc.failure}) {
				t.Errorf("failures %q", got)
			}
			if seen := g.Status.Dependencies; len(seen) != 2 || !seen[0].Ready || seen[1].Ready || !strings.Contains(seen[1].Message, tc.message) {
				t.Errorf("status.dependencies is %+v", seen)
			}
			w.Edit(g, func() { g.Spec.DependsOn = []v1alpha1.DependencyReference{healthy} })
			w.Reconcile(g)
			w.expectOpened(g, app)
		})
	}
}

// A read that fails, or does not return, neither keeps a Gate from closing when it is
// due nor lets it open on what was seen before.
func TestAReadThatFailsClosesAndNeverOpens(t *testing.T) {
	for name, failure := range map[string]error{"refused": errBroken, "without an answer": errHangs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
			w.reports(stage, "True", "Succeeded", "")
			g := w.watchingGate(staging(), v1alpha1.DependencyReference{Kind: "Kustomization", Name: "apps", ReadyExpr: "true"})
			live := w.Targets
			w.Targets = unreadable{live, map[string]error{"staging": failure}}
			_, _ = w.Try(g)
			w.ExpectHeld(app, g)
			w.Targets = live
			w.Reconcile(g)
			w.expectOpened(g, app)

			w.Edit(g, func() { g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(2))} })
			w.Reconcile(g)
			w.Targets = unreadable{live, map[string]error{"staging": failure}}
			w.In(hours(1))
			if _, err := w.Try(g); err == nil {
				t.Error("no retry")
			}
			w.ExpectHeld(app, g)
			if got := opened(g); !strings.HasPrefix(got, "False ClosePeriod: Gate closed by close period 'freeze', ") {
				t.Error(got)
			}
			if !g.Status.Dependencies[1].Ready {
				t.Errorf("the other one is %+v", g.Status.Dependencies[1])
			}
		})
	}
}

func TestACrashBetweenTheStatusAndTheTargetsOfAGateThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	w.reports(stage, "True", "Succeeded", "")
	g := w.watchingGate(staging())
	w.Reconcile(g)
	w.expectOpened(g, app)
	w.In(hours(1))
	w.reports(stage, "False", "BuildFailed", "no such file")
	w.Writes.Before = crashing(1)
	if _, err := w.Try(g); err == nil {
		t.Fatal("no crash")
	}
	if seen := g.Status.Dependencies; len(seen) != 1 || seen[0].Ready || w.Suspended(app) {
		t.Errorf("the decision is not the first write: %+v, suspended %v", seen, w.Suspended(app))
	}
	w.Writes.Reset()
	w.In(hours(2))
	w.Reconcile(g)
	w.expectWaiting(g, app, "BuildFailed: no such file")
	if since := g.Status.Dependencies[0].Since; !since.Time.Equal(start.Add(hours(1))) {
		t.Errorf("not ready since %s", since)
	}
}
