package controllers

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

func newTargetList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// inGit returns a Kustomization as it is in Git.
func inGit(namespace, name string, labels map[string]string) *target.Object {
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

// gitApply applies an object as kustomize-controller does, with spec.suspend if
// that is given.
func gitApply(ctx context.Context, obj *target.Object, suspend ...bool) error {
	config := inGit(obj.GetNamespace(), obj.GetName(), obj.GetLabels())
	for _, s := range suspend {
		config.Object["spec"].(map[string]any)["suspend"] = s //nolint:forcetypeassert // see inGit
	}
	return cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner("kustomize-controller"), client.ForceOwnership)
}

// kustomization creates a target as kustomize-controller does.
func (w *world) kustomization(name string, labels map[string]string) *target.Object {
	w.Helper()
	return w.kustomizationIn(w.Namespace, name, labels)
}

// kustomizations creates some without labels.
func (w *world) kustomizations(n int) []*target.Object {
	w.Helper()
	all := make([]*target.Object, n)
	for i := range all {
		all[i] = w.kustomization(fmt.Sprintf("app-%02d", i), nil)
	}
	return all
}

func (w *world) kustomizationIn(namespace, name string, labels map[string]string) *target.Object {
	w.Helper()
	obj := inGit(namespace, name, labels)
	w.Must(gitApply(w.Context(), obj))
	return w.reload(obj)
}

// git applies a target again, with spec.suspend if that is given.
func (w *world) git(obj *target.Object, suspend ...bool) {
	w.Helper()
	w.Must(gitApply(w.Context(), obj, suspend...))
}

// suspend is flux suspend.
func (w *world) suspend(obj *target.Object) { w.flux(obj, `{"spec":{"suspend":true}}`) }

// resume is flux resume.
func (w *world) resume(obj *target.Object) { w.flux(obj, `{"spec":{"suspend":null}}`) }

func (w *world) flux(obj *target.Object, patch string) {
	w.Helper()
	w.Must(w.Flux(obj, patch))
}

// reload reads a target again.
func (w *world) reload(obj *target.Object) *target.Object {
	w.Helper()
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}

// look is what a test looks at in a target.
type look struct {
	// suspend is spec.suspend: true, false or nil.
	suspend any
	heldBy  string
	// approved is the status and message of the condition, empty if it is missing.
	approved string
	// owners are the managers that own spec.suspend.
	owners []string
}

func (w *world) look(obj *target.Object) look {
	w.Helper()
	w.reload(obj)
	l := look{heldBy: obj.GetAnnotations()[v1alpha1.HeldByAnnotation]}
	l.suspend, _, _ = unstructured.NestedFieldNoCopy(obj.Object, "spec", "suspend")
	if c := meta.FindStatusCondition(obj.GetConditions(), v1alpha1.ApprovedCondition); c != nil {
		l.approved = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
	for _, entry := range obj.GetManagedFields() {
		fields := struct {
			Spec map[string]any `json:"f:spec"`
		}{}
		w.Must(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		if _, ok := fields.Spec["f:suspend"]; ok {
			l.owners = append(l.owners, entry.Manager)
		}
	}
	slices.Sort(l.owners)
	return l
}

func (w *world) expect(obj *target.Object, want look) {
	w.Helper()
	got := w.look(obj)
	if got.suspend != want.suspend || got.heldBy != want.heldBy || got.approved != want.approved || !slices.Equal(got.owners, want.owners) {
		w.Errorf("%s:\ngot  %+v\nwant %+v", obj.GetName(), got, want)
	}
}

// expectHeld checks all that makes a target held by Gates.
func (w *world) expectHeld(obj *target.Object, gates ...*v1alpha1.Gate) {
	w.Helper()
	w.expect(obj, look{
		suspend: true, heldBy: target.FormatHeldBy(keys(gates)), owners: []string{v1alpha1.FieldManager},
		approved: string(metav1.ConditionFalse) + " GateClosed " + w.explain(gates),
	})
}

// expectHolder checks who holds a target, and not what its condition says so far.
func (w *world) expectHolder(obj *target.Object, gates ...*v1alpha1.Gate) {
	w.Helper()
	if got := w.look(obj); got.suspend != true || got.heldBy != target.FormatHeldBy(keys(gates)) {
		w.Errorf("%s: got %+v, want it held by %q", obj.GetName(), got, keys(gates))
	}
}

// expectFree checks that nothing holds a target, and that it says so.
func (w *world) expectFree(obj *target.Object) {
	w.Helper()
	if got := w.look(obj); got.suspend != nil || got.heldBy != "" || !strings.HasPrefix(got.approved, "True GateOpened Released: ") {
		w.Errorf("%s: got %+v, want it free", obj.GetName(), got)
	}
}

// explain returns why Gates hold a target, by their status.
func (w *world) explain(gates []*v1alpha1.Gate) string {
	w.Helper()
	var holders []verdict.Gate
	for _, name := range keys(gates) {
		g := w.read(view.ParseKey(name))
		if g == nil {
			w.Fatalf("gate %s does not exist", name)
		}
		g.Spec.Suspend = false // the condition keeps the reason from before
		holders = append(holders, verdict.Governing(name, g, w.clock.Now()))
	}
	return verdict.Explain(holders, w.clock.Now())
}

func keys(gates []*v1alpha1.Gate) []string {
	var all []string
	for _, g := range gates {
		all = append(all, key(g))
	}
	return target.ParseHeldBy(target.FormatHeldBy(all))
}

// expectReleased checks that a target is as if no Gate had ever held it, except for the condition: it names the Gate if that
// governs it still, because it is open or has mode Audit.
func (w *world) expectReleased(obj *target.Object, by *v1alpha1.Gate) {
	w.Helper()
	var gates []verdict.Gate
	scope, _ := w.on().gates.Selector.Scope(w.Context())
	if g := w.read(client.ObjectKeyFromObject(by)); g != nil && g.DeletionTimestamp.IsZero() && scope.Governs(g, &w.reload(obj).Unstructured) &&
		w.Reaches(g.Namespace, obj.GetNamespace()) {
		gates = []verdict.Gate{verdict.Governing(key(by), g, w.clock.Now())}
	}
	w.expect(obj, look{approved: "True GateOpened " + verdict.Judge(verdict.Observed{}, gates).Released()})
}

// expectUntouched checks that no Gate ever touched a target.
func (w *world) expectUntouched(obj *target.Object) {
	w.Helper()
	w.expect(obj, look{})
}

// suspended returns whether spec.suspend of a target is true.
func (w *world) suspended(obj *target.Object) bool {
	w.Helper()
	return w.look(obj).suspend == true
}
