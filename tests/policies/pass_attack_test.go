package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	passGates = v1alpha1.PassGatesAnnotation
	heldBy    = v1alpha1.HeldByAnnotation
)

// attacker returns a person who may patch Kustomizations and open the Gate production alone.
func (w *world) attacker() *person {
	w.Helper()
	mallory := w.as("mallory", "gate-viewer")
	w.mayOn("mallory", "patch", apps)
	w.mayOn("mallory", "get", apps)
	w.bind("mallory", false, "open", []string{"production"}, "gates.gating.toolkit.fluxcd.io")
	return mallory
}

// passArgs returns the arguments that request a pass of the app.
func passArgs(pairs ...string) []string {
	return append([]string{"annotate", "--overwrite", "kustomization", "app"}, pairs...)
}

// expectPassRefused waits until a pass is refused because of the Gate freeze, and fails if the object ran meanwhile.
func (w *world) expectPassRefused(app *unstructured.Unstructured, h *harness.History) {
	w.Helper()
	want := "gate '" + w.Namespace + "/freeze' holds it as well, and is not in " + passGates
	w.Eventually("the pass is refused", func() error {
		if note := w.annotationOf(app, v1alpha1.PassAnnotation); !strings.HasPrefix(note, "state=Refused\n") || !strings.Contains(note, want) {
			return fmt.Errorf("recorded %q", note)
		}
		return nil
	})
	for _, version := range h.All() {
		if !harness.Suspended(version) {
			w.Errorf("it ran: %v", version.GetAnnotations())
		}
	}
}

// onApp is a reference to the app of these tests.
var onApp = v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"}

func TestAPassThatListsForgedGatesIsRefused(t *testing.T) {
	w := newWorld(t)
	app, mallory := w.heldApp("freeze"), w.attacker()
	w.gate("production")
	h := w.Record(app.GroupVersionKind())
	start := w.stopController()
	w.allowed(mallory, passArgs(heldBy+"="+w.Namespace+"/production")...)
	w.allowed(mallory, passArgs(passAt+"="+nowNano(), passGates+"=*")...)
	if list := w.annotationOf(app, passGates); list != w.Namespace+"/production" {
		t.Errorf("it lists %q", list)
	}
	w.allowed(mallory, passArgs(passGates+"=*")...) // has no effect
	start()
	w.expectPassRefused(app, h)
	if list := w.annotationOf(app, passGates); list != w.Namespace+"/production" {
		t.Errorf("it lists %q", list)
	}
	w.allowed(mallory, passArgs(passAt+"-")...)
	if list, ok := app.GetAnnotations()[passGates]; w.annotationOf(app, passAt) != "" || app.GetAnnotations()[passGates] != "" {
		t.Errorf("without a request, it lists %q: %t", list, ok)
	}
}

func TestAPassDoesNotPassAGateWhoseNameFoundNoRoom(t *testing.T) { fills(t) }

func TestAPassDoesNotPassAGateWhoseNameFoundNoRoomWithTheLock(t *testing.T) {
	w := newWorld(t)
	w.Must(cluster.InstallComponent(w.Context(), "lock"))
	t.Cleanup(func() {
		if err := cluster.RemoveComponent(context.WithoutCancel(w.Context()), "lock"); err != nil {
			t.Error(err)
		}
	})
	w.ClosedGate("production", onApp)
	w.Eventually("the lock is in force", func() error {
		app := w.Kustomization("app")
		if err := w.Client.Create(w.Context(), app, client.DryRunAll); err != nil || !harness.Suspended(app) {
			return errors.Join(err, errors.New("an object is not born held"))
		}
		return nil
	})
	fills(t)
}

// fills has an attacker fill the annotations, so that the name of the Gate that closes does not fit.
func fills(t *testing.T) {
	w := newWorld(t)
	app, mallory := w.heldApp("production"), w.attacker()
	used := len("filler") + len(",/freeze") - 1
	for name, value := range app.GetAnnotations() {
		used += len(name) + len(value)
	}
	patch := func(annotations map[string]any) {
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
		w.Must(err)
		w.allowed(mallory, "patch", "kustomization", "app", "--type=merge", "--patch-file="+w.file(string(raw)))
	}
	patch(map[string]any{"filler": strings.Repeat("x", 256<<10-used)})
	h := w.Record(app.GroupVersionKind())
	freeze := w.ClosedGate("freeze", onApp)
	w.Eventually("it is held by what has no room", func() error {
		if w.Read(freeze); freeze.Status.Targets == nil || freeze.Status.Targets.Held != 1 {
			return fmt.Errorf("its targets are %+v", freeze.Status.Targets)
		}
		return nil
	})
	if names := w.annotationOf(app, heldBy); names != w.Namespace+"/production" {
		t.Fatalf("held by %q", names)
	}
	patch(map[string]any{"filler": nil, passAt: nowNano()})
	w.expectPassRefused(app, h)
}

// The object does not have the name of the Gate yet, and the time of the request is later than the closing.
func TestAPassDoesNotPassAGateThatClosesAfterwards(t *testing.T) {
	w := newWorld(t)
	app, mallory := w.heldApp("production"), w.attacker()
	freeze := w.Gate("freeze", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{onApp}})
	w.Opened("freeze", "True")
	h := w.Record(app.GroupVersionKind())
	start := w.stopController()
	w.Annotate(freeze, v1alpha1.CloseRequestedAtAnnotation, nowNano())
	w.allowed(mallory, passArgs(passAt+"="+time.Now().Add(50*time.Second).UTC().Format(time.RFC3339Nano))...)
	start()
	w.expectPassRefused(app, h)
}

// The attacker writes as the field manager of the controller, and forges the name of a Gate that was closed before the pass began.
func TestAGateThatJoinsAPassEndsIt(t *testing.T) {
	w := newWorld(t)
	app, mallory := w.heldApp("production"), w.attacker()
	freeze := w.gate("freeze")
	w.allowed(mallory, passArgs(passAt+"="+nowNano())...)
	recorded := func(state string) {
		w.Eventually("the pass is "+state, func() error {
			if note := w.annotationOf(app, v1alpha1.PassAnnotation); !strings.HasPrefix(note, "state="+state+"\ngates="+w.Namespace+"/production\n") {
				return fmt.Errorf("recorded %q", note)
			}
			return nil
		})
	}
	recorded("Passing")
	start := w.stopController()
	config := harness.Object(app.GetAPIVersion(), app.GetKind(), client.ObjectKeyFromObject(app))
	annotations := map[string]string{heldBy: w.Namespace + "/freeze," + w.Namespace + "/production"}
	for _, name := range []string{v1alpha1.PassAnnotation, "reconcile.fluxcd.io/requestedAt"} {
		annotations[name] = app.GetAnnotations()[name]
	}
	config.SetAnnotations(annotations)
	raw, err := config.MarshalJSON()
	w.Must(err)
	w.allowed(mallory, "apply", "--server-side", "--force-conflicts", "--field-manager="+v1alpha1.FieldManager, "-f", w.file(string(raw)))
	w.EditGate(freeze, func(g *v1alpha1.Gate) { g.Spec.Targets = []v1alpha1.TargetReference{onApp} })
	start()
	recorded("Ended")
	if note := app.GetAnnotations()[v1alpha1.PassAnnotation]; !harness.Suspended(app) || !strings.Contains(note, "\noutcome=Closed\n") {
		t.Errorf("suspended %t, recorded %s", harness.Suspended(app), note)
	}
}

// TestARequestForAPassCountsOnce has a user who may only patch apply the record of a pass that has ended, and then what the controller holds.
func TestARequestForAPassCountsOnce(t *testing.T) {
	w := newWorld(t)
	app, olga := w.heldApp("production"), w.attacker() // may open production
	mallory := w.as("malice", "gate-viewer")           // may patch alone
	w.mayOn("malice", "patch", apps)
	w.mayOn("malice", "get", apps)
	recorded := func(state, value string) (record string) {
		w.Eventually("the pass is "+state, func() error {
			record = w.annotationOf(app, v1alpha1.PassAnnotation)
			if !strings.HasPrefix(record, "state="+state+"\n") || !strings.Contains(record, "\nrequestedAt="+value+"\n") {
				return fmt.Errorf("recorded %q", record)
			}
			return nil
		})
		return record
	}
	first := nowNano()
	w.allowed(olga, passArgs(passAt+"="+first)...)
	recorded("Passing", first)
	w.Read(app)
	before := app.DeepCopy()
	app.Object["status"] = map[string]any{"lastHandledReconcileAt": app.GetAnnotations()["reconcile.fluxcd.io/requestedAt"], "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "done", "lastTransitionTime": "2026-11-23T12:00:00Z"}}}
	w.Must(w.Client.Status().Patch(w.Context(), app, client.MergeFrom(before)))
	ended := recorded("Ended", first)
	apply := func(manager string, annotations map[string]string, spec map[string]any) {
		config := harness.Object(app.GetAPIVersion(), app.GetKind(), client.ObjectKeyFromObject(app))
		config.SetAnnotations(annotations)
		if spec != nil {
			config.Object["spec"] = spec
		}
		raw, err := json.Marshal(config.Object)
		w.Must(err)
		w.allowed(mallory, "apply", "--server-side", "--force-conflicts", "--field-manager="+manager, "-f", w.file(string(raw)))
	}
	apply("malice", map[string]string{v1alpha1.PassAnnotation: ended}, nil)
	apply(v1alpha1.FieldManager, map[string]string{v1alpha1.HeldByAnnotation: w.Namespace + "/production"}, map[string]any{"suspend": true})
	second := nowNano()
	w.allowed(olga, passArgs(passAt+"="+second)...)
	recorded("Passing", second) // a second pass for the first request would still be in progress
}
