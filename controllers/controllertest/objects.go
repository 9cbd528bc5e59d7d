package controllertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// NewTargetList returns an empty list of a kind.
func NewTargetList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// InGit returns a Kustomization with the content that it has in Git.
func InGit(namespace, name string, labels map[string]string) *target.Object {
	obj := &target.Object{}
	obj.Object = map[string]any{"spec": map[string]any{
		"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"},
	}}
	obj.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	obj.SetKind("Kustomization")
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	return obj
}

// GitApply applies an object as kustomize-controller does. If suspend is given, it is the value of spec.suspend.
func GitApply(ctx context.Context, obj *target.Object, suspend ...bool) error {
	config := InGit(obj.GetNamespace(), obj.GetName(), obj.GetLabels())
	for _, s := range suspend {
		config.Object["spec"].(map[string]any)["suspend"] = s //nolint:forcetypeassert // see inGit
	}
	return controlPlane.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner("kustomize-controller"), client.ForceOwnership)
}

// NewKustomization creates a Kustomization as kustomize-controller applies it.
func (w *World) NewKustomization(name string, labels map[string]string) *target.Object {
	w.Helper()
	return w.NewKustomizationIn(w.Namespace, name, labels)
}

// NewKustomizations creates n Kustomizations without labels.
func (w *World) NewKustomizations(n int) []*target.Object {
	w.Helper()
	all := make([]*target.Object, n)
	for i := range all {
		all[i] = w.NewKustomization(fmt.Sprintf("app-%02d", i), nil)
	}
	return all
}

// NewKustomizationIn creates a Kustomization in a namespace, as kustomize-controller applies it.
func (w *World) NewKustomizationIn(namespace, name string, labels map[string]string) *target.Object {
	w.Helper()
	obj := InGit(namespace, name, labels)
	w.Must(GitApply(w.Context(), obj))
	return w.Reload(obj)
}

// Git applies a target again as kustomize-controller does. If suspend is given, it is the value of spec.suspend.
func (w *World) Git(obj *target.Object, suspend ...bool) {
	w.Helper()
	w.Must(GitApply(w.Context(), obj, suspend...))
}

// Suspend suspends a target as flux suspend does.
func (w *World) Suspend(obj *target.Object) { w.PatchAsFlux(obj, `{"spec":{"suspend":true}}`) }

// Resume resumes a target as flux resume does.
func (w *World) Resume(obj *target.Object) { w.PatchAsFlux(obj, `{"spec":{"suspend":null}}`) }

// PatchAsFlux patches a target as the flux CLI does.
func (w *World) PatchAsFlux(obj *target.Object, patch string) {
	w.Helper()
	w.Must(w.Flux(obj, patch))
}

// Reload reads a target again.
func (w *World) Reload(obj *target.Object) *target.Object {
	w.Helper()
	w.Must(controlPlane.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}

// Suspension contains the fields of a target that tests compare.
type Suspension struct {
	// Suspend is spec.suspend: true, false or nil.
	Suspend any
	HeldBy  string
	// Approved is the status and message of the condition, empty if it is missing.
	Approved string
	// Owners are the managers that own spec.suspend.
	Owners []string
}

// Suspension reads a target and returns the recorded state of its hold.
func (w *World) Suspension(obj *target.Object) Suspension {
	w.Helper()
	w.Reload(obj)
	l := Suspension{HeldBy: obj.GetAnnotations()[v1alpha1.HeldByAnnotation]}
	l.Suspend, _, _ = unstructured.NestedFieldNoCopy(obj.Object, "spec", "suspend")
	if c := meta.FindStatusCondition(obj.GetConditions(), v1alpha1.ApprovedCondition); c != nil {
		l.Approved = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
	for _, entry := range obj.GetManagedFields() {
		fields := struct {
			Spec map[string]any `json:"f:spec"`
		}{}
		w.Must(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		if _, ok := fields.Spec["f:suspend"]; ok {
			l.Owners = append(l.Owners, entry.Manager)
		}
	}
	slices.Sort(l.Owners)
	return l
}

// Expect fails the test if the hold of a target differs from want.
func (w *World) Expect(obj *target.Object, want Suspension) {
	w.Helper()
	got := w.Suspension(obj)
	if got.Suspend != want.Suspend || got.HeldBy != want.HeldBy || got.Approved != want.Approved || !slices.Equal(got.Owners, want.Owners) {
		w.Errorf("%s:\ngot  %+v\nwant %+v", obj.GetName(), got, want)
	}
}

// ExpectHeld checks all signs that Gates hold a target: the field, the annotation and the condition.
func (w *World) ExpectHeld(obj *target.Object, gates ...*v1alpha1.Gate) {
	w.Helper()
	w.Expect(obj, Suspension{
		Suspend: true, HeldBy: target.FormatHeldBy(Keys(gates)), Owners: []string{v1alpha1.FieldManager},
		Approved: string(metav1.ConditionFalse) + " GateClosed " + w.explain(gates),
	})
}

// ExpectHolder checks which Gates hold a target. It ignores the condition, which is set later.
func (w *World) ExpectHolder(obj *target.Object, gates ...*v1alpha1.Gate) {
	w.Helper()
	if got := w.Suspension(obj); got.Suspend != true || got.HeldBy != target.FormatHeldBy(Keys(gates)) {
		w.Errorf("%s: got %+v, want it held by %q", obj.GetName(), got, Keys(gates))
	}
}

// ExpectFree checks that no Gate holds a target, and that its condition reports this.
func (w *World) ExpectFree(obj *target.Object) {
	w.Helper()
	if got := w.Suspension(obj); got.Suspend != nil || got.HeldBy != "" || !strings.HasPrefix(got.Approved, "True GateOpened Released: ") {
		w.Errorf("%s: got %+v, want it free", obj.GetName(), got)
	}
}

// explain returns why Gates hold a target, according to their status.
func (w *World) explain(gates []*v1alpha1.Gate) string {
	w.Helper()
	var holders []verdict.Gate
	for _, name := range Keys(gates) {
		g := w.GetGate(view.ParseKey(name))
		if g == nil {
			w.Fatalf("gate %s does not exist", name)
		}
		g.Spec.Suspend = false // the condition keeps its previous reason
		holders = append(holders, verdict.Governing(name, g, w.FakeClock.Now()))
	}
	return verdict.Explain(holders, w.FakeClock.Now())
}

// Keys returns the keys of Gates in the order of the annotation.
func Keys(gates []*v1alpha1.Gate) []string {
	var all []string
	for _, g := range gates {
		all = append(all, Key(g))
	}
	return target.ParseHeldBy(target.FormatHeldBy(all))
}

// ExpectReleased checks that only the condition remains of a hold. The condition must name the Gate if the Gate still
// governs the target.
func (w *World) ExpectReleased(obj *target.Object, by *v1alpha1.Gate) {
	w.Helper()
	var gates []verdict.Gate
	scope, _ := w.Reconcilers().Gates.Selector.Scope(w.Context())
	if g := w.GetGate(client.ObjectKeyFromObject(by)); g != nil && g.DeletionTimestamp.IsZero() && scope.Governs(g, &w.Reload(obj).Unstructured) &&
		w.Reaches(g.Namespace, obj.GetNamespace()) {
		gates = []verdict.Gate{verdict.Governing(Key(by), g, w.FakeClock.Now())}
	}
	w.Expect(obj, Suspension{Approved: "True GateOpened " + verdict.Judge(verdict.Observed{}, gates).Released()})
}

// ExpectUntouched checks that no Gate has changed a target.
func (w *World) ExpectUntouched(obj *target.Object) {
	w.Helper()
	w.Expect(obj, Suspension{})
}

// Suspended returns whether spec.suspend of a target is true.
func (w *World) Suspended(obj *target.Object) bool {
	w.Helper()
	return w.Suspension(obj).Suspend == true
}
