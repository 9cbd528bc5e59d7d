package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
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

const nothing = "1 of 2 entries of spec.targets matches nothing: spec.targets[1] Kustomization app; " +
	"compare kind, name, namespace and labels with the objects in the cluster; 1 of 1 targets held"

func TestUnmatchedReferenceIsReportedAfterMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"), named("app"))
	result := w.Reconcile(g)
	if got := readyOf(g); got != "True Succeeded: 1 of 1 targets held" || result.RequeueAfter > emptyFor {
		t.Errorf("at first %s, and it is looked at again after %s", got, result.RequeueAfter)
	}
	w.In(emptyFor - time.Millisecond)
	w.Reconcile(g)
	if got := readyOf(g); got != "True Succeeded: 1 of 1 targets held" {
		t.Error(got)
	}
	w.Events.Take("")
	w.In(emptyFor)
	w.Reconcile(g)
	equal(t, readyOf(g), "True NoTargets: "+nothing)
	equal(t, w.Events.Take("Warning Gate/production"), []string{"Warning Gate/production NoTargets: " + nothing})
	if got := w.series()["gate_empty_references"]; got != 1 {
		t.Errorf("the metric says %v", got)
	}

	w.Writes.Take("")
	w.In(hours(1))
	w.Reconcile(g)
	w.restart()
	w.Reconcile(g)
	if written := w.Writes.Take("patch-status Gate"); len(written) > 0 || readyOf(g) != "True NoTargets: "+nothing {
		t.Errorf("written %q, %s", written, readyOf(g))
	}
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.In(hours(1.1))
	w.Reconcile(g)
	if told := w.Events.Take("Warning"); len(told) > 0 || !view.HasEmptyReference(g) {
		t.Errorf("it is told once more: %q, %s", told, readyOf(g))
	}

	app := w.NewKustomization("app", nil)
	w.HandleEvent(nil, &app.Unstructured, g)
	w.Reconcile(g)
	equal(t, readyOf(g), "True Succeeded: 0 of 2 targets held")
	if value, ok := w.series()["gate_empty_references"]; ok {
		t.Errorf("the metric still says %v", value)
	}

	// A minute later, the missing one is reported again.
	w.Remove(app, g)
	w.Reconcile(g)
	w.In(hours(1.1) + emptyFor)
	w.Reconcile(g)
	if told := w.Events.Take("Warning"); len(told) != 1 || !view.HasEmptyReference(g) {
		t.Errorf("told %q, %s", told, readyOf(g))
	}
}

func TestUnmatchedReferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AllowCrossNamespaceRefs = true
	other := w.NewNamespace()
	w.NewKustomization("apps", map[string]string{"tier": "web"})
	w.NewKustomizationIn(other, "there", nil)
	in := func(ref v1alpha1.TargetReference, namespace string) v1alpha1.TargetReference {
		ref.Namespace = namespace
		return ref
	}
	kind := func(kind string) v1alpha1.TargetReference { return v1alpha1.TargetReference{Kind: kind, Name: "*"} }
	for name, tc := range map[string]struct {
		refs []v1alpha1.TargetReference
		want string
	}{
		"one by its name":                    {[]v1alpha1.TargetReference{named("app")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization app;"},
		"one that is there":                  {[]v1alpha1.TargetReference{named("apps")}, ""},
		"one in another namespace":           {[]v1alpha1.TargetReference{in(named("apps"), other)}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization apps in " + other},
		"one that is in another namespace":   {[]v1alpha1.TargetReference{in(named("there"), other)}, ""},
		"all of a kind that has none":        {[]v1alpha1.TargetReference{kind("HelmRelease")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] HelmRelease *;"},
		"all of a kind":                      {[]v1alpha1.TargetReference{all()}, ""},
		"those with a label":                 {[]v1alpha1.TargetReference{all("tier", "web")}, ""},
		"those with another label":           {[]v1alpha1.TargetReference{all("tier", "wep")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization * with tier=wep;"},
		"one in all namespaces":              {[]v1alpha1.TargetReference{in(named("there"), "*")}, ""},
		"one in no namespace":                {[]v1alpha1.TargetReference{in(named("nowhere-"+w.Namespace), "*")}, "1 of 1 entries of spec.targets matches nothing: spec.targets[0] Kustomization nowhere-" + w.Namespace + " in all namespaces;"},
		"some of several":                    {[]v1alpha1.TargetReference{named("a"), named("apps"), named("b")}, "2 of 3 entries of spec.targets match nothing: spec.targets[0] Kustomization a, spec.targets[2] Kustomization b;"},
		"more than anybody reads":            {[]v1alpha1.TargetReference{named("a"), named("b"), named("c"), named("d"), named("e"), named("f"), named("g")}, "spec.targets[4] Kustomization e and 2 more;"},
		"a gate without targets":             {nil, ""},
		"a kind that has a fault of its own": {[]v1alpha1.TargetReference{{Kind: "Secret", Name: "x"}}, ""},
	} {
		g := w.ClosedGate("g-"+strings.ReplaceAll(name, " ", "-"), tc.refs...)
		w.In(0)
		w.Reconcile(g)
		w.In(emptyFor)
		_, _ = w.Try(g)
		if got := readyOf(g); view.HasEmptyReference(g) != (tc.want != "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The object is a target already, so the number of targets does not change.
func TestNewLabelMatchesReferenceImmediately(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", all(), all("tier", "web"))
	w.Reconcile(g)
	w.In(emptyFor)
	w.Reconcile(g)
	if !view.HasEmptyReference(g) {
		t.Fatal(readyOf(g))
	}
	w.Relabel(app, map[string]string{"tier": "web"}, g)
	w.Reconcile(g)
	equal(t, readyOf(g), "True Succeeded: 1 of 1 targets held")

	// A Gate without references reports none that matches nothing.
	none := w.ClosedGate("none")
	w.Reconcile(none)
	w.In(hours(1))
	w.Reconcile(none)
	equal(t, readyOf(none), "True Succeeded: 0 of 0 targets held")
}

// lookedUp counts how often references without labels are evaluated.
type lookedUp struct {
	view.TargetReader
	n *int
}

// Any implements TargetReader.
func (l lookedUp) Any(ctx context.Context, adapter target.Adapter, namespace string, ref *v1alpha1.TargetReference) (bool, error) {
	if len(ref.MatchLabels) == 0 {
		*l.n++
	}
	return l.TargetReader.Any(ctx, adapter, namespace, ref)
}

func TestMatchedReferencesAreNotCheckedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("apps", nil)
	n := 0
	w.Targets = lookedUp{w.Targets, &n}
	g := w.ClosedGate("production", all(), all("tier", "web"))
	w.Reconcile(g)
	n = 0
	for i := range 5 {
		w.NewKustomization("app-"+string(rune('a'+i)), nil)
		w.Reconcile(g)
	}
	if n > 0 {
		t.Errorf("looked %d times although there are more targets", n)
	}
	w.Remove(inGit(w.Namespace, "apps", nil), g)
	w.Reconcile(g)
	if n == 0 {
		t.Error("not looked at although there are fewer targets")
	}
	n = 0
	w.In(hours(24))
	w.Reconcile(g)
	if n == 0 {
		t.Error("not looked at when the interval is over")
	}
}

func TestReportedBypassIsNotRepeatedAfterRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomizations(3)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{all(), named("app")}, Release: &v1alpha1.ReleasePolicy{PerMinute: 1},
	})
	w.Reconcile(g)
	w.In(emptyFor)
	w.Reconcile(g)
	if told := w.Events.Take("Warning"); len(told) != 1 {
		t.Fatalf("told %q", told)
	}
	w.Open(g, w.FakeClock.Now())
	for after := emptyFor; after < 5*emptyFor; after += emptyFor {
		w.In(after)
		w.Reconcile(g)
	}
	if told := w.Events.Take("Warning"); len(told) > 0 || !view.HasEmptyReference(g) {
		t.Errorf("told %q, %s", told, readyOf(g))
	}
}
