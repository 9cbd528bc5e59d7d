package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// name sets the annotation with the Gates of an object as a user does. Without Gates, it removes the annotation.
func (w *world) name(obj *target.Object, gates ...string) {
	w.Helper()
	value := fmt.Sprintf("%q", strings.Join(gates, ", "))
	if len(gates) == 0 {
		value = "null"
	}
	w.PatchAsFlux(obj, `{"metadata":{"annotations":{"`+v1alpha1.GatesAnnotation+`":`+value+`}}}`)
}

// missing reconciles a Gate that does not exist.
func (w *world) missing(namespace, name string) ctrl.Result {
	w.Helper()
	result, err := w.TryNamed(namespace, name)
	w.Must(err)
	return result
}

// notFound returns the message for an object that refers to a Gate that does not exist.
func notFound(gate string) string {
	return "gate '" + gate + "' does not exist. Create it, or remove it from the annotation " + v1alpha1.GatesAnnotation + "."
}

func (w *world) expectRefused(obj *target.Object, gates []string, reason, message string) {
	w.Helper()
	w.Expect(obj, suspension{
		Suspend: true, HeldBy: target.FormatHeldBy(gates), Owners: []string{v1alpha1.FieldManager},
		Approved: "False " + reason + " Held because " + message,
	})
}

func TestObjectNamingMissingGateIsHeld(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.name(app, "production")
	gate := w.Namespace + "/production"
	if result := w.missing(w.Namespace, "production"); result.RequeueAfter != verdict.MissingInterval {
		t.Errorf("looked at again after %s", result.RequeueAfter)
	}
	w.expectRefused(app, []string{gate}, "GateNotFound", notFound(gate))
	if got := w.Events.Take("Warning Kustomization/apps GateNotFound"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	w.Resume(app)
	w.missing(w.Namespace, "production")
	w.expectRefused(app, []string{gate}, "GateNotFound", notFound(gate))
	w.Writes.Take("")
	w.missing(w.Namespace, "production")
	if got := w.Writes.Take(""); len(got) > 0 {
		t.Errorf("writes although nothing changed: %q", got)
	}

	g := w.ClosedGate("production")
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.Reconcile(g)
	w.expectRefused(app, []string{gate}, "GateNotFound", notFound(gate))
	w.name(app)
	if result := w.missing(w.Namespace, "production"); result.RequeueAfter != 0 {
		t.Errorf("looked at again after %s although nothing names it", result.RequeueAfter)
	}
	if w.Suspended(app) {
		t.Error("the annotation is gone, the hold is not")
	}

	w.name(app, "production and qa")
	w.missing(w.Namespace, "*")
	w.expectRefused(app, []string{w.Namespace + "/*"}, "GateNotFound",
		"the annotation "+v1alpha1.GatesAnnotation+" cannot be read. It must be a list of at most 32 gates, each as name or namespace/name.")
	w.name(app, "production")
	w.missing(w.Namespace, "*")
	if !w.Suspended(app) {
		t.Error("released although the gate to which it refers now does not exist")
	}
	w.Reconcile(w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened}))
	w.missing(w.Namespace, "*")
	if w.Suspended(app) {
		t.Error("held in the name of a gate to which it no longer refers")
	}
}

func TestObjectNamingForbiddenGateIsHeld(t *testing.T) {
	w := reaching(t)
	other := w.NewNamespace()
	app := w.NewKustomization("apps", nil)
	w.name(app, other+"/qa")
	qa := w.GateIn(other, "qa", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Reconcile(qa)
	w.ExpectUntouched(app)

	w.AllowCrossNamespaceRefs = false
	w.Reconcile(qa)
	refused := outOfReach(qa)
	w.expectRefused(app, []string{key(qa)}, "AccessDenied", refused)
	equal(t, qa.Status.Targets.TargetCounts, v1alpha1.TargetCounts{})

	// With --watch-all-namespaces=false, no Gate of another namespace is reconciled.
	w.AllowCrossNamespaceRefs = true
	another := w.NewKustomization("another", nil)
	w.name(another, other+"/qa")
	w.Namespaces = map[string]ctrlcache.Config{w.Namespace: {}}
	for range 2 {
		_, err := w.Reconcilers().Targets.Reconcile(w.Context(), target.KeyOf(another))
		w.Must(err)
	}
	w.expectRefused(another, []string{key(qa)}, "AccessDenied", outOfReach(qa))
	w.Namespaces, w.AllowCrossNamespaceRefs = nil, false

	w.Must(cluster.Client.Delete(w.Context(), qa))
	w.Reconcile(qa)
	w.expectRefused(app, []string{key(qa)}, "AccessDenied", refused)
	w.AllowCrossNamespaceRefs = true
	w.missing(other, "qa")
	w.expectRefused(app, []string{key(qa)}, "GateNotFound", notFound(key(qa)))
}

// outOfReach returns the message for an object that refers to a Gate in another namespace.
func outOfReach(g *v1alpha1.Gate) string {
	return "gate '" + key(g) + "' is in another namespace. That requires a controller that watches that namespace and runs with --no-cross-namespace-refs=false. " +
		"Otherwise, remove the gate from the annotation " + v1alpha1.GatesAnnotation + "."
}

// Each step begins with a client that removes the names of the Gates from a held target.
func TestHoldWithoutNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	removeNames := func() {
		t.Helper()
		w.ExpectHeld(app, g)
		w.PatchAsFlux(app, `{"metadata":{"annotations":{"`+v1alpha1.HeldByAnnotation+`":null}}}`)
	}
	removeNames()
	w.Reconcile(g)

	removeNames() // another Gate is open, and is reconciled first
	w.Reconcile(w.Gate("open", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()}}))

	healthy := w.Client // the Gate belongs to another shard
	w.Client = emptyGates{withoutGates{healthy}}
	_, err := w.Reconcilers().Targets.Reconcile(w.Context(), target.KeyOf(app))
	w.Must(err)
	removeNames()
	w.Client = emptyGates{healthy}
	w.missing(w.Namespace, "")
	if !w.Suspended(app) {
		t.Error("released although a gate of another shard is closed")
	}
	w.Client = healthy
	w.Reconcile(g)

	removeNames() // the Gate is suspended, and adds no names
	w.Edit(g, func() { g.Spec.Suspend = true })
	if result := w.missing(w.Namespace, ""); result.RequeueAfter != verdict.MissingInterval || !w.Suspended(app) {
		t.Errorf("the gate is suspended: requeued after %s, held is %t", result.RequeueAfter, w.Suspended(app))
	}
	w.Edit(g, func() { g.Spec.Suspend, g.Spec.Targets = false, nil })
	w.Reconcile(g)
	w.Writes.Before = failing("Kustomization")
	if _, err := w.TryNamed(w.Namespace, ""); err == nil {
		t.Error("no error although the target cannot be written")
	}
	w.Writes.Reset()
	if result := w.missing(w.Namespace, ""); result.RequeueAfter != 0 || w.Suspended(app) {
		t.Errorf("no gate governs it: requeued after %s, held is %t", result.RequeueAfter, w.Suspended(app))
	}
}

// While a Gate is being deleted, objects that refer to it are held for that reason. They do not count as held without a Gate.
func TestObjectNamingDeletedGateStaysHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.name(app, "production")
	w.crowd(app, 0)
	g := w.ClosedGate("production")
	w.Reconcile(g)
	if l := w.Suspension(app); l.Suspend != true || l.HeldBy != "" {
		t.Fatalf("got %+v", l)
	}
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.Writes.Take("")
	w.Reconcile(g)
	if !w.gone(g) || !w.Suspended(app) {
		t.Errorf("held: %t, after %q", w.Suspended(app), w.Writes.Take(""))
	}
}
