package controllers_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
)

const (
	// emptyFor is how long a reference must match nothing before that is reported.
	emptyFor = time.Minute
	// applierMaxAge is how long an applier is cached.
	applierMaxAge = 10 * time.Second
)

// readyOf returns the condition Ready of a Gate as "status reason: message".
func readyOf(g *v1alpha1.Gate) string {
	c := conditions.Get(g, meta.ReadyCondition)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// The labels of an object change that is a target already, so the number of targets does not change.
func TestUnmatchedReferenceIsReportedUntilLabelMatches(t *testing.T) {
	t.Parallel()
	const nothing = "1 of 2 entries of spec.targets matches nothing: spec.targets[1] Kustomization * with tier=web; " +
		"compare kind, name, namespace and labels with the objects in the cluster; 1 of 1 targets held"
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"), all("tier", "web"))
	result := w.Reconcile(g)
	if got := readyOf(g); got != "True Succeeded: 1 of 1 targets held" || result.RequeueAfter > emptyFor {
		t.Errorf("at first %s, and it is requeued after %s", got, result.RequeueAfter)
	}
	w.Events.Take("")
	w.In(emptyFor)
	w.Reconcile(g)
	equal(t, readyOf(g), "True NoTargets: "+nothing)
	equal(t, w.Events.Take("Warning Gate/production"), []string{"Warning Gate/production NoTargets: " + nothing})
	equal(t, w.series()["gate_empty_references"], 1.0)

	w.Writes.Take("")
	w.In(hours(1))
	w.Reconcile(g)
	w.restart()
	w.Reconcile(g)
	expectNone(t, w.Writes.Take("patch-status Gate"))
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	if expectNone(t, w.Events.Take("Warning")); !view.HasEmptyReference(g) {
		t.Error(readyOf(g))
	}

	w.Relabel(app, map[string]string{"tier": "web"}, g)
	w.Reconcile(g)
	equal(t, readyOf(g), "True Succeeded: 0 of 1 targets held")
	if value, ok := w.series()["gate_empty_references"]; ok {
		t.Errorf("the metric is still %v", value)
	}
}
