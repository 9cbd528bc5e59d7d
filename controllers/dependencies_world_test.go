package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

// staging returns a reference to the Kustomization staging.
func staging(readyExpr ...string) v1alpha1.DependencyReference {
	return v1alpha1.DependencyReference{Kind: "Kustomization", Name: "staging", ReadyExpr: strings.Join(readyExpr, "")}
}

// watchingGate creates a Gate that is opened by default, governs apps and has dependencies.
func (w *world) watchingGate(refs ...v1alpha1.DependencyReference) *v1alpha1.Gate {
	w.Helper()
	return w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")}, DependsOn: refs,
	})
}

func hardFreeze(from, until time.Duration) v1alpha1.ClosePeriod {
	return v1alpha1.ClosePeriod{Period: dated("freeze", from, until), Override: v1alpha1.OverrideDeny}
}

// reports writes the condition Ready of an object for its current generation, as its controller does.
func (w *world) reports(obj client.Object, status, reason, message string) {
	w.Helper()
	fresh := &unstructured.Unstructured{}
	fresh.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), fresh))
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": fresh.GetGeneration(), "conditions": []any{map[string]any{
		"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-11-23T12:00:00Z",
	}}}})
	w.Must(err)
	w.Must(cluster.Client.Status().Patch(w.Context(), fresh, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kustomize-controller")))
}

// opened returns the condition Opened as "status reason: message".
func opened(g *v1alpha1.Gate) string {
	c := conditions.Get(g, v1alpha1.OpenedCondition)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func isOpened(g *v1alpha1.Gate) bool { return conditions.IsTrue(g, v1alpha1.OpenedCondition) }

// expectOpened checks that a Gate is opened and holds nothing.
func (w *world) expectOpened(g *v1alpha1.Gate, app *target.Object) {
	w.Helper()
	if !strings.HasPrefix(opened(g), "True ") || w.Suspended(app) {
		w.Errorf("not opened: %s; watch %+v", opened(g), g.Status.Dependencies)
	}
}

// expectWaiting checks that a Gate holds its target because staging is not ready, and the reason.
func (w *world) expectWaiting(g *v1alpha1.Gate, app *target.Object, why string) {
	w.Helper()
	want := fmt.Sprintf("False DependencyNotReady: Gate closed, Kustomization '%s/staging' is not ready: %s", w.Namespace, why)
	if opened(g) != want {
		w.Errorf("got  %s\nwant %s", opened(g), want)
	}
	if g.Status.NextTransition != nil {
		w.Errorf("next transition %+v", g.Status.NextTransition)
	}
	w.ExpectHeld(app, g)
}

// unreadable cannot read some objects in full.
type unreadable struct {
	view.TargetReader
	objects map[string]error
}

func (u unreadable) Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if err := u.objects[key.Name]; err != nil {
		return nil, err
	}
	return u.TargetReader.Read(ctx, adapter, key)
}
