package lock

import (
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// passing returns the controller's record of a pass that the Gate production granted.
func (w *world) passing() string {
	return "state=Passing\ngates=" + w.gate("production") + "\nrequestedAt=2026-11-26T12:00:00Z\nstartedAt=2026-11-26T12:00:00Z\nuntil=2026-11-26T12:10:00Z"
}

// pass makes the write of the controller that lets one reconciliation pass.
func (w *world) pass(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	config := harness.Object(obj.GetAPIVersion(), obj.GetKind(), client.ObjectKeyFromObject(obj))
	config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: w.gate("production"), v1alpha1.PassAnnotation: w.passing()})
	w.Must(w.asController(config))
	if w.read(obj); harness.Suspended(obj) {
		w.Fatal("the controller cannot start a pass")
	}
	return obj
}

// heldAndPassing returns an object with a pass in progress while the lock is closed.
func (w *world) heldAndPassing(name string) *unstructured.Unstructured {
	w.Helper()
	w.lock(lockv1alpha1.GateLockSpec{Gates: map[string]bool{w.gate("production"): true}, Targets: map[string][]string{
		"Kustomization/app": {w.gate("production")}, "Kustomization/other": {w.gate("production")},
	}})
	app := w.apply(w.inGit(name))
	w.Must(w.controllerHolds(app))
	return w.pass(app)
}

func TestWritesOfOthersDoNotHoldPassingObject(t *testing.T) {
	w := newWorld(t)
	app := w.heldAndPassing("app")
	for name, write := range map[string]func(){
		"Git":             func() { w.apply(w.inGit("app")) },
		"an annotation":   func() { w.Annotate(app.DeepCopy(), "team", "shop") },
		"flux resume":     func() { w.resume(app) },
		"another replace": func() { w.replace(app, false) },
	} {
		write()
		if w.read(app); harness.Suspended(app) || harness.HeldBy(app) != w.gate("production") {
			t.Errorf("after %s: suspended %t, held by %q", name, harness.Suspended(app), harness.HeldBy(app))
		}
	}
	w.Must(w.controllerHolds(app))
	w.resume(app)
	w.expectHeld(app, w.gate("production"))

	other := w.apply(w.inGit("other")) // the pass is only for the first object
	w.expectHeld(other, w.gate("production"))
}

func TestSuspensionOfPassingObjectIsKept(t *testing.T) {
	w := newWorld(t)
	app := w.heldAndPassing("app")
	w.suspend(app)
	if w.read(app); !harness.Suspended(app) || len(owners(app)) == 0 {
		t.Errorf("suspended %t by %v", harness.Suspended(app), owners(app))
	}
}

func TestPassRecordCannotBeForged(t *testing.T) {
	record := func(w *world, app *unstructured.Unstructured, value string) {
		patch := `{"metadata":{"annotations":{"` + v1alpha1.PassAnnotation + `":` + value + `}},"spec":{"suspend":null}}`
		w.Must(w.Client.Patch(w.Context(), app.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(v1alpha1.FieldManager)))
	}
	// closes closes the Gate after a write of annotations that looks like one of the controller.
	closes := func(w *world, app *unstructured.Unstructured, heldBy, pass string) {
		config := harness.Object(app.GetAPIVersion(), app.GetKind(), client.ObjectKeyFromObject(app))
		config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: heldBy, v1alpha1.PassAnnotation: pass})
		w.Must(w.asController(config))
		w.lock(w.locked())
		w.Annotate(app.DeepCopy(), "team", "shop")
	}
	for name, attack := range map[string]func(w *world, app *unstructured.Unstructured){
		"on a held object": func(w *world, app *unstructured.Unstructured) {
			w.lock(w.locked())
			w.Must(w.controllerHolds(app))
			for range 2 {
				record(w, app, strconv.Quote(w.passing()))
				w.expectHeld(app, w.gate("production"))
			}
		},
		"on a new object": func(w *world, app *unstructured.Unstructured) {
			w.Must(w.Client.Delete(w.Context(), app))
			w.lock(w.locked())
			again := w.inGit("app")
			again.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: w.gate("production"), v1alpha1.PassAnnotation: w.passing()})
			w.apply(again)
		},
		"written by another client before the gate closes": func(w *world, app *unstructured.Unstructured) {
			w.Annotate(app.DeepCopy(), v1alpha1.PassAnnotation, w.passing(), v1alpha1.HeldByAnnotation, w.gate("production"))
			w.lock(w.locked())
			w.Annotate(app.DeepCopy(), "team", "shop")
		},
		"for another gate, with a forged heldBy": func(w *world, app *unstructured.Unstructured) {
			closes(w, app, w.gate("other")+","+w.gate("production"), strings.Replace(w.passing(), "/production", "/other", 1))
		},
		"of an ended pass": func(w *world, app *unstructured.Unstructured) {
			closes(w, app, w.gate("production"), strings.Replace(w.passing(), "Passing", "Ended", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			app := w.apply(w.inGit("app"))
			attack(w, app)
			if w.read(app); !harness.Suspended(app) {
				t.Errorf("the object is not suspended: %v", app.GetAnnotations())
			}
		})
	}
	w := newWorld(t)
	for _, value := range []string{strconv.Quote(strings.Replace(w.passing(), "12:10", "22:10", 1)), `"state=Passing"`, "null"} {
		app := w.heldAndPassing("app")
		record(w, app, value)
		if w.read(app); !harness.Suspended(app) {
			t.Errorf("with the record %s, the object is not suspended: %v", value, app.GetAnnotations())
		}
		w.lock(w.unlocked())
		w.remove(app)
	}
}

func TestPassingObjectCannotBeDeleted(t *testing.T) {
	w := newWorld(t)
	app := w.heldAndPassing("app")
	if err := w.Client.Delete(w.Context(), app.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}
