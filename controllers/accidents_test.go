package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
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
	"compare kind, name, namespace and labels with what is there; 1 of 1 targets held"

func TestAReferenceThatMatchesNothingIsToldAfterAMinute(t *testing.T) {
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

	// A minute later, the missing one is told again.
	w.Remove(app, g)
	w.Reconcile(g)
	w.In(hours(1.1) + emptyFor)
	w.Reconcile(g)
	if told := w.Events.Take("Warning"); len(told) != 1 || !view.HasEmptyReference(g) {
		t.Errorf("told %q, %s", told, readyOf(g))
	}
}

func TestWhichReferencesMatchNothing(t *testing.T) {
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

// The object is a target already, so the number of targets does not tell.
func TestALabelThatMakesAReferenceMatchIsSeenAtOnce(t *testing.T) {
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
}

func TestAGateThatOnlyItsObjectsNameMissesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.ClosedGate("production")
	w.Reconcile(g)
	w.In(hours(1))
	w.Reconcile(g)
	equal(t, readyOf(g), "True Succeeded: 0 of 0 targets held")
}

// lookedUp counts how often references without labels are looked at.
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

func TestReferencesThatMatchAreNotLookedAtEachTime(t *testing.T) {
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

// appliedBy gives a Gate the labels of what Flux applies.
func (w *world) appliedBy(g *v1alpha1.Gate, group, name string) {
	w.Helper()
	w.Edit(g, func() {
		g.Labels = map[string]string{group + ".toolkit.fluxcd.io/name": name, group + ".toolkit.fluxcd.io/namespace": w.Namespace}
	})
}

func TestAGateThatHoldsItsOwnSourceSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("flux-system", nil)
	source := v1alpha1.TargetReference{Kind: "GitRepository", Name: "none"}
	g := w.ClosedGate("production", named("flux-system"))
	w.Reconcile(g)
	if conditions.Has(g, v1alpha1.HoldsItsOwnSourceCondition) {
		t.Error("nobody applies it")
	}
	expect := func(what, names string) {
		t.Helper()
		w.FakeClock.SetTime(w.FakeClock.Now().Add(applierMaxAge))
		w.Events.Take("")
		was := conditions.IsTrue(w.GetGate(client.ObjectKeyFromObject(g)), v1alpha1.HoldsItsOwnSourceCondition)
		w.Reconcile(g)
		c, told := conditions.Get(g, v1alpha1.HoldsItsOwnSourceCondition), w.Events.Take("Warning Gate/production")
		value, measured := w.series()["gate_holds_own_source"]
		if names == "" {
			if c != nil || len(told) > 0 || measured {
				t.Errorf("%s: %+v, %q, %v", what, c, told, value)
			}
			return
		}
		message := "Gate governs " + names + ", through which it is applied from Git: while the gate is closed, no change of it in Git arrives, not even one that opens it. " +
			"Apply it from elsewhere, or remove that from its targets. To open it: kubectl gate open production -n " + w.Namespace
		if c == nil || c.Status != "True" || c.Reason != v1alpha1.HoldsItsOwnSourceCondition || c.Message != message || value != 1 {
			t.Errorf("%s: %+v, %v", what, c, value)
		}
		if !was && !slices.Equal(told, []string{"Warning Gate/production HoldsItsOwnSource: " + message}) || was && len(told) > 0 {
			t.Errorf("%s: told %q", what, told)
		}
		if !conditions.IsReady(g) && !view.HasEmptyReference(g) {
			t.Errorf("%s: %+v", what, g.Status.Conditions)
		}
	}
	w.appliedBy(g, "kustomize", "flux-system")
	expect("its labels say so", "Kustomization "+w.Namespace+"/flux-system")
	expect("nothing has changed", "Kustomization "+w.Namespace+"/flux-system")
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{named("apps")} })
	expect("it does not hold it any more", "")
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{all(), source} })
	expect("it holds the source, too", "Kustomization "+w.Namespace+"/flux-system and GitRepository "+w.Namespace+"/none")
	w.appliedBy(g, "kustomize", "gone")
	expect("the Kustomization is no more", "")
	w.appliedBy(g, "kustomize", "flux-system")
	expect("it is the first again", "Kustomization "+w.Namespace+"/flux-system and GitRepository "+w.Namespace+"/none")
	w.Edit(g, func() { g.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "elsewhere" })
	expect("another namespace applies it", "")
}

func TestAGateOfAHelmReleaseSaysThatItHoldsThat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := view.NewTarget(schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"})
	release.SetNamespace(w.Namespace)
	release.SetName("gates")
	w.Must(unstructured.SetNestedMap(release.Object, map[string]any{"chart": "gates", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}, "spec", "chart", "spec"))
	w.Must(unstructured.SetNestedField(release.Object, "1m", "spec", "interval"))
	w.Create(release)
	for kind, name := range map[string]string{"HelmRelease": "gates", "HelmRepository": "charts", "HelmChart": w.Namespace + "-gates"} {
		g := w.ClosedGate(strings.ToLower(kind), v1alpha1.TargetReference{Kind: kind, Name: name})
		w.appliedBy(g, "helm", "gates")
		w.Reconcile(g)
		if got := conditions.GetMessage(g, v1alpha1.HoldsItsOwnSourceCondition); !strings.HasPrefix(got, "Gate governs "+kind+" "+w.Namespace+"/"+name+", ") {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// A Gate reaches no other namespace without the flag.
func TestASourceOutOfReachIsNotHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.NewNamespace()
	w.NewKustomizationIn(other, "flux-system", nil)
	ref := named("flux-system")
	ref.Namespace = other
	g := w.ClosedGate("production", ref)
	w.appliedBy(g, "kustomize", "flux-system")
	w.Edit(g, func() { g.Labels["kustomize.toolkit.fluxcd.io/namespace"] = other })
	_, _ = w.Try(g)
	if conditions.Has(g, v1alpha1.HoldsItsOwnSourceCondition) {
		t.Error("it holds nothing there")
	}
	w.AllowCrossNamespaceRefs = true
	w.restart()
	w.FakeClock.SetTime(start.Add(applierMaxAge))
	w.Reconcile(g)
	if !conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition) {
		t.Errorf("%+v", g.Status.Conditions)
	}
}

// flaky counts reads past the cache, which fail if they are broken.
type flaky struct {
	view.TargetReader
	n      *int
	broken *bool
}

// Read implements TargetReader.
func (u flaky) Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	*u.n++
	if *u.broken {
		return nil, errBroken
	}
	return u.TargetReader.Read(ctx, adapter, key)
}

func TestWhatCannotBeReadLeavesTheConditionAsItIsAndDelaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("flux-system", nil)
	n, broken := 0, false
	w.Targets = flaky{w.Targets, &n, &broken}
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()}})
	w.appliedBy(g, "kustomize", "flux-system")
	w.Reconcile(g)
	if n != 1 || !conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition) {
		t.Fatalf("read %d times, %+v", n, g.Status.Conditions)
	}
	w.FakeClock.SetTime(start.Add(hours(1)))
	w.Reconcile(g)
	if n != 1 {
		t.Errorf("read %d times although nothing has changed", n)
	}
	broken = true
	w.Edit(g, func() { g.Spec.Default = v1alpha1.StateClosed })
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if !conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition) || !conditions.IsReady(g) {
		t.Errorf("%+v", g.Status.Conditions)
	}
	broken, n = false, 0
	w.Reconcile(g)
	if n != 1 {
		t.Errorf("read %d times although it could not be read", n)
	}
	for _, name := range []string{"second", "third"} {
		other := w.ClosedGate(name, all())
		w.appliedBy(other, "kustomize", "flux-system")
		w.Reconcile(other)
	}
	if n != 1 {
		t.Errorf("what applies three gates is read %d times at the same time", n)
	}
}

func TestAGateThatHoldsItsOwnSourceIsCurrentForFlux(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("flux-system", nil)
	g := w.ClosedGate("production", all(), named("app"))
	w.appliedBy(g, "kustomize", "flux-system")
	w.Reconcile(g)
	w.In(emptyFor)
	w.Reconcile(g)
	live := view.NewTarget(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), live))
	got, err := status.Compute(live)
	if w.Must(err); got.Status != status.CurrentStatus || !view.HasEmptyReference(g) || !conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition) {
		t.Errorf("%+v, %+v", got, g.Status.Conditions)
	}
}

func TestWhatIsKnownIsNotToldOnceMoreAfterARelease(t *testing.T) {
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

// Whoever forges the labels of Flux would learn from the condition what is elsewhere.
func TestWhatAppliesAGateIsNotReadWhereTheGateDoesNotReach(t *testing.T) {
	w := newWorld(t)
	other := w.NewNamespace()
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps"))
	source.Object["spec"] = map[string]any{"interval": "1h", "url": "https://example.com/apps"}
	w.Create(source)
	applier := inGit(other, "apps", nil)
	applier.Object["spec"] = map[string]any{"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "apps", "namespace": w.Namespace}}
	w.Create(&applier.Unstructured)
	for allowed, want := range map[bool]bool{false: false, true: true} {
		w.AllowCrossNamespaceRefs = allowed
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("production-%t", allowed), Namespace: w.Namespace, Labels: map[string]string{
			"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": other,
		}}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "GitRepository", Name: "*"}}}}
		w.Create(g)
		w.Reconcile(g)
		if got := conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition); got != want {
			t.Errorf("cross-namespace references allowed: %t, the condition says %t", allowed, got)
		}
	}
}
