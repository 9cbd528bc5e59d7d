package policies

import (
	"context"
	"encoding/json"
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
	passAt  = v1alpha1.PassRequestedAtAnnotation
	passBy  = v1alpha1.PassRequestedByAnnotation
	passWhy = v1alpha1.PassReasonAnnotation
)

// heldApp returns a Kustomization that closed Gates hold, after the policies of passes are in force.
func (w *world) heldApp(gates ...string) *unstructured.Unstructured {
	w.Helper()
	app := w.Kustomization("app")
	w.Create(app)
	for _, name := range gates {
		w.ClosedGate(name, v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"})
	}
	w.until("the Kustomization is held", func() (bool, any) {
		w.Read(app)
		return harness.Suspended(app) && len(strings.Split(harness.HeldBy(app), ",")) == len(gates), harness.HeldBy(app)
	})
	for policy, patch := range map[string]string{
		"gate-pass-verb":  `{"metadata":{"annotations":{"` + v1alpha1.PassAnnotation + `":"x"}}}`,
		"gate-pass-stamp": `{"metadata":{"annotations":{"` + passBy + `":"x"}}}`,
	} {
		w.until(policy+" is in force", func() (bool, any) {
			out, err := admin.kubectl(w.Context(), w.Namespace, "patch kustomization app --type=merge --dry-run=server -o=yaml -p "+patch)
			return err != nil || !strings.Contains(out, passBy) && !strings.Contains(out, v1alpha1.PassAnnotation), out
		})
	}
	return app
}

// annotationOf returns the current value of an annotation of an object.
func (w *world) annotationOf(app *unstructured.Unstructured, name string) string {
	w.Helper()
	w.Read(app)
	return app.GetAnnotations()[name]
}

func TestPassNeedsVerbOpenOnEachHoldingGate(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp("production", "freeze")
	mallory := w.as("mallory", "gate-viewer")
	w.mayOn("mallory", "patch get create list", apps)
	for _, only := range []string{"", "production", "freeze"} {
		if only != "" {
			defer w.bind("mallory", false, "open", []string{only}, "gates.gating.toolkit.fluxcd.io")()
		}
		if only == "freeze" {
			break // and now both
		}
		for _, args := range []string{
			"annotate kustomization app " + passAt + "=NOW",
			"annotate kustomization app " + passWhy + "=hotfix",
			"annotate kustomization app " + passAt + "=NOW " + passBy + "=alice",
			`patch kustomization app --type=json -p [{"op":"add","path":"/metadata/annotations/pass.gate.fluxcd.io~1requestedAt","value":"NOW"}]`,
			`patch kustomization app --type=merge -p {"metadata":{"annotations":{"gating.toolkit.fluxcd.io/heldBy":"x/y","` + passAt + `":"NOW"}}}`,
			`patch kustomization app --type=merge -p {"metadata":{"annotations":{"gating.toolkit.fluxcd.io/heldBy":null,"` + passAt + `":"NOW"}}}`,
		} {
			w.refused(mallory, "user mallory may not request a pass of Kustomization "+w.Namespace+"/app: it needs the verb open", args)
		}
	}
	w.allowed(mallory, "annotate", "kustomization", "app", passAt+"="+nowNano(), passBy+"=alice", passWhy+"=hotfix")
	w.is("the requester", w.annotationOf(app, passBy), "mallory")
	w.until("the Kustomization passes", func() (bool, any) {
		record := w.annotationOf(app, v1alpha1.PassAnnotation)
		return strings.HasPrefix(record, "state=Passing\n") && strings.Contains(record, "\nrequestedBy=mallory\n") && strings.HasSuffix(record, "\nreason=hotfix"), record
	})
	note := w.annotationOf(app, v1alpha1.PassAnnotation)
	for _, patch := range []string{`null`, `"x"`, `"state=Ended"`} {
		w.allowed(mallory, `patch kustomization app --type=merge -p {"metadata":{"annotations":{"`+v1alpha1.PassAnnotation+`":`+patch+`,"`+passBy+`":"alice"}}}`)
		w.is("the record and the requester", []string{w.annotationOf(app, v1alpha1.PassAnnotation), w.annotationOf(app, passBy)}, []string{note, "mallory"})
	}
	bob := w.as("bob", opener)
	w.mayOn("bob", "patch get", apps)
	w.allowed(bob, "annotate", "--overwrite", "kustomization", "app", passAt+"="+nowNano())
	w.is("the requester and the reason", []string{w.annotationOf(app, passBy), w.annotationOf(app, passWhy)}, []string{"bob", ""})
}

// A pass needs a hold. A manifest would request it again each time that it is applied.
func TestPassIsRequestedManuallyForHeldTargets(t *testing.T) {
	w := newWorld(t)
	app := w.heldApp("production")
	free := w.Kustomization("free")
	w.Create(free)
	w.refused(admin, "no gate holds Kustomization "+w.Namespace+"/free", "annotate kustomization free "+passAt+"=NOW")
	w.refused(admin, "must be requested manually, with kubectl gate pass, not by a manifest",
		`apply --server-side -f {"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"app","annotations":{"`+passAt+`":"NOW"}}}`)
	copied := w.Kustomization("copied")
	copied.SetAnnotations(map[string]string{
		passAt: nowNano(), passBy: "alice", v1alpha1.PassAnnotation: "state=Passing", v1alpha1.HeldByAnnotation: w.Namespace + "/production", "team": "shop",
	})
	w.Must(w.Client.Create(w.Context(), copied, client.FieldOwner("velero")))
	w.Read(copied)
	for _, name := range []string{passAt, passBy, v1alpha1.PassAnnotation} {
		if value, ok := copied.GetAnnotations()[name]; ok {
			t.Errorf("a new object has %s: %s", name, value)
		}
	}
	w.Annotate(app.DeepCopy(), passAt, nowNano())
	w.Annotate(app.DeepCopy(), passAt, "") // kustomize-controller removes the annotations of kubectl
}

// A policy must handle many Gates, and cannot check a permission for each of them.
func TestPassOfTargetHeldByManyGates(t *testing.T) {
	w := newWorld(t)
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("gate-%d", i))
	}
	w.heldApp(names...)
	rita := w.as("rita", opener)
	w.mayOn("rita", "patch get", apps)
	w.refused(rita, "more than 8 gates hold it, so it needs the verb open on all gates", "annotate", "kustomization", "app", passAt+"="+nowNano())
	defer w.bind("rita", true, "open", nil, "gates.gating.toolkit.fluxcd.io")()
	w.until("rita may open all gates", func() (bool, any) {
		out, err := rita.kubectl(w.Context(), w.Namespace, "annotate --overwrite kustomization app "+passAt+"=NOW")
		return err == nil, out
	})
}

const (
	passGates = v1alpha1.PassGatesAnnotation
	heldBy    = v1alpha1.HeldByAnnotation
)

// attacker returns a person who may patch Kustomizations and open only the Gate production.
func (w *world) attacker() *person {
	w.Helper()
	mallory := w.as("mallory", "gate-viewer")
	w.mayOn("mallory", "patch get", apps)
	w.bind("mallory", false, "open", []string{"production"}, "gates.gating.toolkit.fluxcd.io")
	return mallory
}

// passArgs returns the arguments that request a pass of the app.
func passArgs(pairs ...string) []string {
	return append([]string{"annotate", "--overwrite", "kustomization", "app"}, pairs...)
}

// expectPassRefused waits until a pass is refused because of the Gate freeze, and fails if the object was resumed meanwhile.
func (w *world) expectPassRefused(app *unstructured.Unstructured, h *harness.History) {
	w.Helper()
	want := "gate '" + w.Namespace + "/freeze' holds it as well, and is not in " + passGates
	w.until("the pass is refused", func() (bool, any) {
		record := w.annotationOf(app, v1alpha1.PassAnnotation)
		return strings.HasPrefix(record, "state=Refused\n") && strings.Contains(record, want), record
	})
	for _, version := range h.All() {
		if !harness.Suspended(version) {
			w.Errorf("the object was resumed: %v", version.GetAnnotations())
		}
	}
}

// onApp refers to the app of these tests.
var onApp = v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"}

func TestPassWithForgedGatesIsRefused(t *testing.T) {
	w := newWorld(t)
	app, mallory := w.heldApp("freeze"), w.attacker()
	w.gate("production")
	h := w.Record(app.GroupVersionKind())
	start := w.stopController()
	w.allowed(mallory, passArgs(heldBy+"="+w.Namespace+"/production")...)
	w.allowed(mallory, passArgs(passAt+"="+nowNano(), passGates+"=*")...)
	w.is("the list", w.annotationOf(app, passGates), w.Namespace+"/production")
	w.allowed(mallory, passArgs(passGates+"=*")...) // has no effect
	start()
	w.expectPassRefused(app, h)
	w.is("the list", w.annotationOf(app, passGates), w.Namespace+"/production")
	w.allowed(mallory, passArgs(passAt+"-")...)
	w.is("the list without a request", w.annotationOf(app, passAt)+w.annotationOf(app, passGates), "")
}

func TestPassDoesNotCoverOmittedGateName(t *testing.T) { fills(t) }

func TestPassWithLockDoesNotCoverOmittedGateName(t *testing.T) {
	w := newWorld(t)
	w.Must(cluster.InstallComponent(w.Context(), "lock"))
	t.Cleanup(func() {
		if err := cluster.RemoveComponent(context.WithoutCancel(w.Context()), "lock"); err != nil {
			t.Error(err)
		}
	})
	w.ClosedGate("production", onApp)
	w.until("the lock is in force", func() (bool, any) {
		app := w.Kustomization("app")
		err := w.Client.Create(w.Context(), app, client.DryRunAll)
		return err == nil && harness.Suspended(app), err
	})
	fills(t)
}

// fills makes an attacker fill the annotations, so that the name of the closing Gate does not fit.
func fills(t *testing.T) {
	w := newWorld(t)
	app, mallory := w.heldApp("production"), w.attacker()
	const suspendedBy = "fluxcd.controlplane.io/suspendedBy" // the controller leaves it out if the name needs the space
	used := len("filler") + len(",/freeze") - 1
	for name, value := range app.GetAnnotations() {
		if name != suspendedBy {
			used += len(name) + len(value)
		}
	}
	patch := func(annotations map[string]any) {
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
		w.Must(err)
		w.allowed(mallory, "patch kustomization app --type=merge -p "+string(raw))
	}
	patch(map[string]any{suspendedBy: nil, "filler": strings.Repeat("x", 256<<10-used)})
	h := w.Record(app.GroupVersionKind())
	freeze := w.ClosedGate("freeze", onApp)
	w.until("the gate without room for its name holds it", func() (bool, any) {
		w.Read(freeze)
		return freeze.Status.Targets != nil && freeze.Status.Targets.Held == 1, freeze.Status.Targets
	})
	w.is("the names", w.annotationOf(app, heldBy), w.Namespace+"/production")
	patch(map[string]any{"filler": nil, passAt: nowNano()})
	w.expectPassRefused(app, h)
}

// The name of the Gate is not on the object yet, and the time of the request is later than the close.
func TestPassDoesNotCoverGateClosingLater(t *testing.T) {
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
func TestGateJoiningPassEndsIt(t *testing.T) {
	w := newWorld(t)
	app, mallory := w.heldApp("production"), w.attacker()
	freeze := w.gate("freeze")
	w.allowed(mallory, passArgs(passAt+"="+nowNano())...)
	recorded := func(state string) {
		w.until("the pass is "+state, func() (bool, any) {
			record := w.annotationOf(app, v1alpha1.PassAnnotation)
			return strings.HasPrefix(record, "state="+state+"\ngates="+w.Namespace+"/production\n"), record
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
	w.allowed(mallory, "apply", "--server-side", "--force-conflicts", "--field-manager="+v1alpha1.FieldManager, "-f", string(raw))
	w.EditGate(freeze, func(g *v1alpha1.Gate) { g.Spec.Targets = []v1alpha1.TargetReference{onApp} })
	start()
	recorded("Ended")
	if note := app.GetAnnotations()[v1alpha1.PassAnnotation]; !harness.Suspended(app) || !strings.Contains(note, "\noutcome=Closed\n") {
		t.Errorf("suspended %t, recorded %s", harness.Suspended(app), note)
	}
}

// TestPassRequestCountsOnce makes a user who may only patch apply the record of an ended pass, and then the hold of the controller.
func TestPassRequestCountsOnce(t *testing.T) {
	w := newWorld(t)
	app, olga := w.heldApp("production"), w.attacker() // may open production
	mallory := w.as("malice", "gate-viewer")           // may only patch
	w.mayOn("malice", "patch get", apps)
	recorded := func(state, value string) (record string) {
		w.until("the pass is "+state, func() (bool, any) {
			record = w.annotationOf(app, v1alpha1.PassAnnotation)
			return strings.HasPrefix(record, "state="+state+"\n") && strings.Contains(record, "\nrequestedAt="+value+"\n"), record
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
		w.allowed(mallory, "apply", "--server-side", "--force-conflicts", "--field-manager="+manager, "-f", string(raw))
	}
	apply("malice", map[string]string{v1alpha1.PassAnnotation: ended}, nil)
	apply(v1alpha1.FieldManager, map[string]string{v1alpha1.HeldByAnnotation: w.Namespace + "/production"}, map[string]any{"suspend": true})
	second := nowNano()
	w.allowed(olga, passArgs(passAt+"="+second)...)
	recorded("Passing", second) // a second pass for the first request would still be in progress
}
