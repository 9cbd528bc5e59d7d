package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// fleet is a world with a Kustomization named fleet that applies, from Git, the Kustomization app, which applies a ConfigMap. Gates govern
// app. Each step checks that app matches the model and that no version of it violated a promise.
type fleet struct {
	*world
	model
	versions *versions
	// down is true while the controller is stopped.
	down bool
	// commit and revision count the revisions of fleet and of app in Git.
	commit, revision int
	// note is an annotation of app in Git.
	note int
	// gateSpec changes the spec of new Gates. It may be nil.
	gateSpec func(*v1alpha1.GateSpec)
}

// setting changes a fleet before it is created.
type setting func(*fleet)

func respecting(w *fleet)           { w.respect = true }
func ignoring(w *fleet)             { w.ignore = true }
func naming(w *fleet)               { w.names = true }
func onlyIfNotPresent(w *fleet)     { w.ifNotPresent = true }
func suspendInGit(v string) setting { return func(w *fleet) { w.model.git = v } }

// newFleet returns a fleet with the open Gate production.
func newFleet(t *testing.T, settings ...setting) *fleet {
	t.Helper()
	w := prepareFleet(t, settings...)
	w.begin()
	return w
}

// begin makes Flux apply app, and waits for the writes of Flux to the new object.
func (w *fleet) begin() {
	w.Helper()
	w.newGate("production")
	w.firstApplied()
	w.parentReconciles()
}

// prepareFleet returns a fleet whose app is in Git but not applied, because fleet is not reconciled yet.
func prepareFleet(t *testing.T, settings ...setting) *fleet {
	t.Helper()
	w := &fleet{world: newWorld(t), model: model{withLock: lockInstalled}}
	for _, set := range settings {
		set(w)
	}
	w.versions = watchVersions(w.world, "app")
	w.push()
	w.publishFleet()
	return w
}

// on returns the fleet for a subtest.
func (w *fleet) on(t *testing.T) *fleet {
	w.world = &world{w.On(t)}
	return w
}

// step acts on the target or on the objects that govern it. If resumes is true, other clients than the controller may resume the target
// meanwhile.
func (w *fleet) step(what string, resumes bool, do func()) {
	w.Helper()
	claimed, closed := w.claims(), w.closed
	do()
	if !w.down {
		w.settle()
	}
	w.Logf("%s: %s", what, w.observation().state())
	w.Eventually(what+": app matches the model", w.asModelled)
	if !w.down {
		w.reconcileAllGates()
		w.Must(w.asModelled())
		if w.exists && w.value != "true" {
			w.arrives(fmt.Sprintf("v%d", w.revision))
		}
	}
	w.Must(w.versions.review(w.Context(), w.live().GetResourceVersion(), promises{
		step: what, suspended: overlap(claimed, w.claims()), resumed: resumes,
		free: len(closed)+len(w.closed) == 0, closed: overlap(closed, w.closed),
	}))
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(item string) bool { return slices.Contains(b, item) })
}

// live returns app, without a resource version if it does not exist.
func (w *fleet) live() *unstructured.Unstructured {
	w.Helper()
	app := w.app()
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(app), app)
	w.Must(client.IgnoreNotFound(err))
	if apierrors.IsNotFound(err) {
		return w.app()
	}
	return app
}

func (w *fleet) app() *unstructured.Unstructured {
	return harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("app"))
}

// asModelled compares app with the model. While the controller is down, it compares only fields that other clients write.
func (w *fleet) asModelled() error {
	got := observationOf(w.live())
	want := w.observation()
	if w.down {
		want.heldBy = got.heldBy
	}
	if w.down && w.locked && want.suspend == "true" && len(got.heldBy) == 0 && len(want.owners) == 0 {
		return fmt.Errorf("app is %s, but its annotation names no gate", got)
	}
	if got.String() != want.String() {
		return fmt.Errorf("app is %s, want %s", got, want)
	}
	if refused := got.approved == "False"; !w.down && (want.ours() && !refused || refused && (w.resumed || len(w.closed) == 0)) {
		return fmt.Errorf("app is %s, but Approved is %q", got, got.approved)
	}
	return nil
}

// is checks the observed state of app.
func (w *fleet) is(want state) {
	w.Helper()
	if got := observationOf(w.live()).state(); got != want {
		w.Fatalf("app is %s, want %s", got, want)
	}
}

// reconcileAllGates triggers a reconciliation of every gate, and waits until all have been reconciled.
func (w *fleet) reconcileAllGates() {
	w.Helper()
	gates := &v1alpha1.GateList{}
	w.Must(w.Client.List(w.Context(), gates, client.InNamespace(w.Namespace)))
	for i := range gates.Items {
		g := &gates.Items[i]
		if !g.DeletionTimestamp.IsZero() {
			continue
		}
		w.Decided(g)
	}
}

// merge is a merge patch by a field manager.
func (w *fleet) merge(obj client.Object, manager string, patch map[string]any) {
	w.Helper()
	content, err := json.Marshal(patch)
	w.Must(err)
	w.Must(w.Client.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, content), client.FieldOwner(manager)))
}
