package lock

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestObjectIsCreatedHeld(t *testing.T) {
	w := newWorld(t)
	gate := w.gate("production")
	w.lock(lockv1alpha1.GateLockSpec{
		Gates: map[string]bool{gate: true, "ops/freeze": true, w.gate("open"): false},
		Targets: map[string][]string{
			"Kustomization/app": {gate}, "Kustomization/both": {"ops/freeze", gate}, "GitRepository/*": {"ops/freeze"}, "HelmRelease/app": {gate},
		},
		Labels: map[string]lockv1alpha1.LabelLocks{"Kustomization/team=a": {
			{MatchLabels: map[string]string{"team": "a", "tier": "critical"}, Gates: []string{"ops/freeze"}},
			{MatchLabels: map[string]string{"team": "a"}, Gates: []string{gate}},
		}},
	})
	for name, tc := range map[string]struct {
		object string
		labels map[string]string
		gates  string
		want   string
	}{
		"by its name":                     {object: "app", want: gate},
		"by its name, of two gates":       {object: "both", want: gate + ",ops/freeze"},
		"by all of its labels":            {object: "labelled", labels: map[string]string{"team": "a", "tier": "critical"}, want: gate + ",ops/freeze"},
		"by one label":                    {object: "labelled", labels: map[string]string{"team": "a", "tier": "other"}, want: gate},
		"by the gate that it names":       {object: "naming", gates: "production", want: gate},
		"by gates in other namespaces":    {object: "naming", gates: "ops/freeze, open", want: "ops/freeze"},
		"by a gate that does not exist":   {object: "naming", gates: "nope", want: w.gate("nope")},
		"by an invalid list of gates":     {object: "naming", gates: "a b", want: w.gate("*")},
		"in several ways, each gate once": {object: "app", labels: map[string]string{"team": "a"}, gates: "production,production", want: gate},
		"not if nothing matches":          {object: "other", labels: map[string]string{"tier": "critical"}},
		"not if the gate it names opens":  {object: "naming", gates: "open"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := w.inGit(tc.object)
			obj.SetLabels(tc.labels)
			if tc.gates != "" {
				obj.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: tc.gates})
			}
			w := &world{World: w.On(t), controller: w.controller}
			w.apply(obj)
			if tc.want == "" {
				w.expectFree(obj)
			} else {
				w.expectHeld(obj, tc.want)
			}
			w.remove(obj)
		})
	}
}

// The controller creates the pinned sources of GatedSources.
func TestControllerCreatedObjectIsCreatedHeld(t *testing.T) {
	w := newWorld(t)
	gate := w.gate("production")
	w.lock(lockv1alpha1.GateLockSpec{Gates: map[string]bool{gate: true}, Targets: map[string][]string{"Kustomization/app": {gate}}})
	obj := w.inGit("app")
	w.Must(w.asController(obj.DeepCopy()))
	w.expectHeld(obj, gate)
}

func TestResumeIsRefusedWhileGateIsClosed(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	gate := w.gate("production")
	app := w.inGit("app")
	w.apply(app)
	for name, write := range map[string]func(){
		"flux resume":             func() { w.resume(app) },
		"suspend false":           func() { w.Must(w.Flux(app, `{"spec":{"suspend":false}}`)) },
		"suspend false from Git":  func() { w.apply(w.inGit("app", "false")) },
		"nothing from Git":        func() { w.apply(w.inGit("app")) },
		"the annotation removed":  func() { w.Must(w.Flux(app, `{"metadata":{"annotations":{"`+v1alpha1.HeldByAnnotation+`":null}}}`)) },
		"the annotation forged":   func() { w.Must(w.Flux(app, `{"metadata":{"annotations":{"`+v1alpha1.HeldByAnnotation+`":"a/b"}}}`)) },
		"all annotations removed": func() { w.Must(w.Flux(app, `{"metadata":{"annotations":null},"spec":{"suspend":null}}`)) },
		"a JSON patch":            func() { w.Must(w.json(app, `[{"op":"remove","path":"/spec/suspend"}]`)) },
		"a JSON patch to false":   func() { w.Must(w.json(app, `[{"op":"replace","path":"/spec/suspend","value":false}]`)) },
		"a replacement":           func() { w.replace(app, false) },
		"a replacement from Git":  func() { w.replace(app, true) },
		"managed fields removed": func() {
			w.Must(w.json(app, `[{"op":"replace","path":"/metadata/managedFields","value":[{}]},{"op":"remove","path":"/spec/suspend"}]`))
		},
	} {
		write()
		if w.read(app); !harness.Suspended(app) || harness.HeldBy(app) != gate {
			t.Errorf("%s: suspended %t, held by %q", name, harness.Suspended(app), harness.HeldBy(app))
		}
	}
}

// Not all gates that hold an object must be locked: one of them may respect a resume.
func TestNamesOfHoldingGatesAreKept(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.inGit("app")
	w.apply(app)
	config := harness.Object(app.GetAPIVersion(), app.GetKind(), client.ObjectKeyFromObject(app))
	both := "ops/respecting," + w.gate("production")
	config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: both})
	config.Object["spec"] = map[string]any{"suspend": true}
	w.Must(w.asController(config))
	w.Must(w.Flux(app, `{"metadata":{"annotations":null},"spec":{"suspend":null}}`))
	w.expectHeld(app, both)
}

// Flux compares the result of a dry run with the live object.
func TestDryRunShowsNoDrift(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	for _, suspend := range [][]string{nil, {"false"}} {
		app := w.inGit("app", suspend...)
		w.apply(app)
		w.expectHeld(app, w.gate("production"))
		for range 3 {
			dry := w.apply(w.inGit("app", suspend...), client.DryRunAll)
			if !apiequality.Semantic.DeepEqual(dry.Object["spec"], app.Object["spec"]) || !apiequality.Semantic.DeepEqual(dry.GetAnnotations(), app.GetAnnotations()) {
				t.Errorf("suspend %q: live %v %v, dry-run %v %v", suspend, app.Object["spec"], app.GetAnnotations(), dry.Object["spec"], dry.GetAnnotations())
			}
		}
	}
}

// From the value alone, Flux could not detect that Git has changed.
func TestDryRunShowsSuspendChangesInGit(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.inGit("app")
	w.apply(app)
	w.Must(w.controllerHolds(app))
	for _, step := range []struct {
		suspend []string
		want    string
	}{{[]string{"true"}, "kustomize-controller"}, {nil, ""}, {[]string{"true"}, "kustomize-controller"}, {[]string{"false"}, ""}} {
		w.read(app)
		if app.GetAnnotations()[suspendedBy] == step.want {
			t.Fatalf("suspended by %q before", step.want)
		}
		dry := w.apply(w.inGit("app", step.suspend...), client.DryRunAll)
		if got := dry.GetAnnotations()[suspendedBy]; got != step.want {
			t.Errorf("with %q in Git, the dry run returns suspended by %q, want %q", step.suspend, got, step.want)
		}
		w.apply(w.inGit("app", step.suspend...))
		if got := w.read(app).GetAnnotations()[suspendedBy]; got != step.want || harness.HeldBy(app) == "" {
			t.Errorf("with %q in Git: suspended by %q, want %q", step.suspend, got, step.want)
		}
	}
}

func TestSuspensionByOthersIsNotClaimed(t *testing.T) {
	w := newWorld(t)
	w.lock(w.unlocked())
	before, git := w.inGit("app"), w.inGit("naming", "true")
	git.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: "production"})
	w.apply(before)
	w.suspend(before)
	w.lock(w.locked())
	w.apply(git)
	touch := func() {
		w.Must(w.Flux(before, `{"metadata":{"labels":{"touched":"yes"}}}`))
		w.Must(w.Flux(git, `{"metadata":{"labels":{"touched":"yes"}}}`))
		w.apply(w.inGit("app"))
	}
	touch()
	for obj, owner := range map[string]string{"app": "flux", "naming": "kustomize-controller"} {
		obj := w.read(w.inGit(obj))
		if got := owners(obj); !harness.Suspended(obj) || harness.HeldBy(obj) != "" || len(got) != 1 || got[0] != owner {
			t.Errorf("%s: suspended %t, held by %q, owned by %q", obj.GetName(), harness.Suspended(obj), harness.HeldBy(obj), got)
		}
	}
	// Once resumed while the gate is closed, the object is held by the gate.
	w.resume(before)
	w.expectHeld(before, w.gate("production"))
}

func TestControllerReleases(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.inGit("app")
	w.apply(app)
	w.Must(w.controllerHolds(app))
	if got := owners(w.read(app)); len(got) != 1 || got[0] != v1alpha1.FieldManager {
		t.Errorf("after the takeover, the field is owned by %q", got)
	}
	// An API server may observe late that the lock is open.
	w.Must(w.controllerReleases(app))
	w.expectFree(app)
	w.apply(w.inGit("app"))
	w.expectHeld(app, w.gate("production"))
	w.lock(w.unlocked())
	w.Must(w.controllerHolds(app))
	w.Must(w.controllerReleases(app))
	w.apply(w.inGit("app", "false"))
	w.expectFree(app)
}

func TestSuspensionByGitDuringHoldIsKept(t *testing.T) {
	w := newWorld(t)
	w.lock(w.locked())
	app := w.inGit("app")
	w.apply(app)
	w.Must(w.controllerHolds(app))
	w.apply(w.inGit("app", "true"))
	w.lock(w.unlocked())
	w.Must(w.controllerReleases(app))
	w.read(app)
	if got := owners(app); !harness.Suspended(app) || harness.HeldBy(app) != "" || len(got) != 1 || got[0] != "kustomize-controller" {
		t.Errorf("suspended %t, held by %q, owned by %q", harness.Suspended(app), harness.HeldBy(app), got)
	}
	if got, ok := app.GetAnnotations()[suspendedBy]; ok {
		t.Errorf("the annotation still has suspended by %q", got)
	}
}

func TestObjectUnderDeletionIsReleased(t *testing.T) {
	w := newWorld(t)
	w.lock(w.unlocked())
	app := w.inGit("app")
	app.SetFinalizers([]string{"finalizers.fluxcd.io"})
	w.apply(app)
	w.Must(w.Client.Delete(w.Context(), app.DeepCopy()))
	w.lock(w.locked())
	w.Must(w.Flux(app, `{"metadata":{"labels":{"touched":"yes"}}}`))
	w.expectFree(app)
	w.Must(w.Flux(app, `{"metadata":{"finalizers":null}}`))
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(app), app); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("still exists: %v", err)
	}
}

func TestNamespaceWithoutLockIsUnaffected(t *testing.T) {
	w := newWorld(t)
	app := w.inGit("app")
	app.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: "production"})
	w.apply(app)
	w.expectFree(app)
}
