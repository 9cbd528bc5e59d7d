package controllers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// askPass requests a pass of a target as a user does with kubectl.
func (w *world) askPass(obj *target.Object, at time.Time, by ...string) {
	w.Helper()
	held := verdict.HeldBy(&w.Reload(obj).Unstructured)
	pairs := []string{v1alpha1.PassRequestedAtAnnotation, at.Format(time.RFC3339Nano), v1alpha1.PassGatesAnnotation, gate.PassGates(held)}
	if len(by) > 0 {
		pairs = append(pairs, v1alpha1.PassRequestedByAnnotation, by[0], v1alpha1.PassReasonAnnotation, by[1])
	}
	w.Annotate(w.Reload(obj), pairs...)
}

// passOf returns the recorded last pass of a target.
func (w *world) passOf(obj *target.Object) verdict.Pass {
	w.Helper()
	trimmed := &target.Object{Unstructured: *w.Reload(obj).DeepCopy()}
	target.Trim(&trimmed.Unstructured, verdict.Us)
	return verdict.PassOf(trimmed)
}

// fluxHandles writes the status as Flux does at the end of a reconciliation.
func (w *world) fluxHandles(obj *target.Object, ready, revision string) {
	w.Helper()
	token := w.Reload(obj).GetAnnotations()[fluxmeta.ReconcileRequestAnnotation]
	list := slices.DeleteFunc(obj.GetConditions(), func(c metav1.Condition) bool { return c.Type == "Ready" })
	list = append(list, metav1.Condition{Type: "Ready", Status: metav1.ConditionStatus(ready), Reason: "Test", LastTransitionTime: metav1.NewTime(start)})
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"lastHandledReconcileAt": token, "lastAppliedRevision": revision, "conditions": list}})
	w.Must(err)
	w.Must(cluster.Client.Status().Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("flux")))
}

// expectPassing fails the test unless a pass of the target is in progress.
func (w *world) expectPassing(obj *target.Object, g *v1alpha1.Gate) {
	w.Helper()
	pass, is := w.passOf(obj), w.Suspension(obj)
	if is.Suspend != nil || is.HeldBy != key(g) || pass.State != verdict.PassInProgress || !strings.HasPrefix(is.Approved, "True PassGranted ") ||
		obj.GetAnnotations()[fluxmeta.ReconcileRequestAnnotation] != pass.Since.Format(time.RFC3339Nano) {
		w.Errorf("it does not pass: %+v, noted %+v", is, pass)
	}
}

// expectPassed fails the test unless a target is held again after a pass with an outcome.
func (w *world) expectPassed(obj *target.Object, outcome string) {
	w.Helper()
	pass, is := w.passOf(obj), w.Suspension(obj)
	if is.Suspend != true || is.HeldBy == "" || pass.State != verdict.PassEnded || pass.Outcome != outcome || !strings.HasPrefix(is.Approved, "False GateClosed ") {
		w.Errorf("it is not held after a pass that %s: %+v, noted %+v", outcome, is, pass)
	}
	if token := obj.GetAnnotations()[fluxmeta.ReconcileRequestAnnotation]; token != "" {
		w.Errorf("Flux is still asked with %s", token)
	}
}

func TestOneReconciliationPassesAndTheTargetIsHeldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Events.Take("")

	w.askPass(app, w.In(time.Minute), "alice", "hotfix 1234")
	again := w.Reconcile(g).RequeueAfter
	w.expectPassing(app, g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Held: 1})
	if again <= 0 || again > 11*time.Minute {
		t.Errorf("looked at again after %s", again)
	}
	granted := "A pass through gate '" + key(g) + "' allows one reconciliation since 2026-11-23T12:01:00Z, requested by alice: hotfix 1234. " +
		"The target is held again after it, at 2026-11-23T12:11:00Z at the latest."
	equal(t, w.Events.Take(""), []string{
		"Normal Kustomization/apps PassGranted: " + granted, "Normal Gate/production PassGranted: " + target.KeyOf(app).String() + ": " + granted,
	})
	w.In(2 * time.Minute)
	w.Reconcile(g)
	w.expectPassing(app, g)

	w.fluxHandles(app, "True", "main@sha1:2")
	w.Reconcile(g)
	w.expectPassed(app, verdict.PassSucceeded)
	ended := "The pass of 2026-11-23T12:01:00Z ended at 2026-11-23T12:02:00Z, Ready: Test. The revision is main@sha1:2."
	equal(t, w.Events.Take(""), []string{
		"Normal Kustomization/apps PassEnded: " + ended, "Normal Gate/production PassEnded: " + target.KeyOf(app).String() + ": " + ended,
	})
	equal(t, passesIn(g), []string{
		"PassEnded Kustomization " + w.Namespace + "/apps Succeeded alice: hotfix 1234", "PassGranted Kustomization " + w.Namespace + "/apps  alice: hotfix 1234",
	})
	for i := range 3 { // the request still exists, even for a new process
		w.In(time.Duration(3+i) * time.Minute)
		w.ResetState()
		w.Reconcile(g)
		w.expectPassed(app, verdict.PassSucceeded)
	}
	equal(t, len(passesIn(g)), 2)
	equal(t, w.Events.Take(""), []string(nil))

	w.askPass(app, w.In(hours(1)))
	w.Reconcile(g)
	w.expectPassing(app, g)
}

// passesIn returns the passes in the history of a Gate.
func passesIn(g *v1alpha1.Gate) (all []string) {
	for _, e := range g.Status.History {
		if e.Target != "" {
			all = append(all, e.Reason+" "+e.Target+" "+e.Outcome+" "+e.RequestedBy+": "+e.Message)
		}
	}
	return all
}

func TestCrashAfterAnyWriteOfPassIsRepaired(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"when it begins": false, "when it ends": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range enough {
				w := newWorld(t)
				app := w.NewKustomization("apps", nil)
				g := w.ClosedGate("production", named("apps"))
				w.Reconcile(g)
				w.askPass(app, w.In(time.Minute))
				if ends {
					w.Reconcile(g)
					w.Annotate(w.Reload(app), v1alpha1.PassRequestedAtAnnotation, "") // Flux removes what kubectl has set
					w.fluxHandles(app, "True", "2")
				}
				w.Writes.Before = crashing(n)
				_, err := w.Try(g)
				w.ResetState()
				w.Writes.Reset()
				w.In(2 * time.Minute)
				w.Reconcile(g)
				if ends {
					w.expectPassed(app, verdict.PassSucceeded)
					equal(t, len(passesIn(g)), 2)
				} else {
					w.expectPassing(app, g)
					equal(t, len(passesIn(g)), 1)
				}
				if t.Failed() {
					t.Fatalf("after a crash at write %d: %v", n, err)
				}
				if err == nil {
					return
				}
			}
			t.Errorf("more than %d writes", enough)
		})
	}
}
