// Package applier finds the objects that apply a Gate from Git, and whether the Gate governs them. It has no client.
package applier

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Reference identifies an object that Gates can hold.
type Reference struct{ Kind, Namespace, Name string }

// String returns the kind, the namespace and the name.
func (r Reference) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Appliers returns the Flux objects that apply an object with these labels.
func Appliers(labels map[string]string) (found []Reference) {
	for _, a := range []struct{ kind, group string }{{kustomizev1.KustomizationKind, kustomizev1.GroupVersion.Group}, {helmv2.HelmReleaseKind, helmv2.GroupVersion.Group}} {
		if name := labels[a.group+"/name"]; name != "" {
			found = append(found, Reference{a.kind, labels[a.group+"/namespace"], name})
		}
	}
	return found
}

// Objects holds objects by reference. Objects that could not be read are missing.
type Objects map[Reference]*unstructured.Unstructured

// get returns the object, or a placeholder with only its kind, namespace and name if it is missing.
func (k Objects) get(r Reference) *unstructured.Unstructured {
	if obj := k[r]; obj != nil {
		return obj
	}
	obj := &unstructured.Unstructured{}
	if a, err := target.For("", r.Kind); err == nil {
		obj.SetAPIVersion(a.GroupKind().Group + "/v1")
	}
	obj.SetKind(r.Kind)
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	return obj
}

// Sources returns the sources of an applier. The result is empty if the applier is missing.
func (k Objects) Sources(applier Reference) (all []Reference) {
	obj := k.get(applier)
	for i, path := range [][]string{target.SourceRefPath, target.ChartRefPath, target.ChartSourceRefPath} {
		ref := target.ReferenceAt(obj, path)
		if ref.Name == "" {
			continue
		}
		namespace := cmp.Or(ref.Namespace, applier.Namespace)
		all = append(all, Reference{ref.Kind, namespace, ref.Name})
		if i == 2 { // helm-controller creates a HelmChart from it
			all = append(all, Reference{sourcev1.HelmChartKind, namespace, target.HelmChartName(applier.Namespace, applier.Name)})
		}
	}
	return all
}

// Bootstrap returns the objects that "flux bootstrap" creates: a source and a Kustomization with the name of their namespace.
func (k Objects) Bootstrap() (all []Reference) {
	for r := range k {
		if r.Name == r.Namespace && slices.Contains(gate.BootstrapKinds, r.Kind) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Reference) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// Governed returns the appliers and their sources that a Gate governs.
func (k Objects) Governed(g *v1alpha1.Gate, appliers []Reference, scope verdict.Scope) (governed []Reference) {
	for _, a := range appliers {
		for _, r := range append([]Reference{a}, k.Sources(a)...) {
			if scope.GovernsInReach(g, k.get(r)) {
				governed = append(governed, r)
			}
		}
	}
	return governed
}
