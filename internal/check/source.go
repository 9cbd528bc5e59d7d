package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Reference names an object that Gates can hold.
type Reference struct{ Kind, Namespace, Name string }

// String returns the kind, the namespace and the name.
func (r Reference) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Appliers returns which objects of Flux apply something that has these labels.
func Appliers(labels map[string]string) (found []Reference) {
	for _, a := range []struct{ kind, prefix string }{{"Kustomization", "kustomize.toolkit.fluxcd.io/"}, {"HelmRelease", "helm.toolkit.fluxcd.io/"}} {
		if name := labels[a.prefix+"name"]; name != "" {
			found = append(found, Reference{a.kind, labels[a.prefix+"namespace"], name})
		}
	}
	return found
}

// ControllerAppliers returns which objects of Flux install a controller.
func ControllerAppliers(controllers []Controller) (found []Reference) {
	for _, c := range controllers {
		found = append(found, Appliers(c.labels)...)
	}
	return found
}

// Known are objects by what they are called. Those that could not be read are missing.
type Known map[Reference]*unstructured.Unstructured

// of returns an object, or one that has nothing but its name.
func (k Known) of(r Reference) *unstructured.Unstructured {
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

// needs returns an applier, and the sources that it refers to.
func (k Known) needs(applier Reference) []Reference {
	all := []Reference{applier}
	obj := k.of(applier)
	for _, path := range [][]string{{"spec", "sourceRef"}, {"spec", "chartRef"}, {"spec", "chart", "spec", "sourceRef"}} {
		ref, _, _ := unstructured.NestedStringMap(obj.Object, path...)
		if ref["name"] == "" {
			continue
		}
		namespace := ref["namespace"]
		if namespace == "" {
			namespace = applier.Namespace
		}
		all = append(all, Reference{ref["kind"], namespace, ref["name"]})
	}
	return all
}

// OwnSource finds Gates that hold what brings them into the cluster, or what installs the controller.
func OwnSource(gates []v1alpha1.Gate, known Known, installs []Reference, scope verdict.Scope) (findings []Finding) {
	for i := range gates {
		g := &gates[i]
		for _, a := range Appliers(g.Labels) {
			for _, r := range known.needs(a) {
				if scope.Governs(g, known.of(r)) {
					findings = append(findings, Finding{Error, gateName(g), fmt.Sprintf("it holds its own source %s: while it is closed, no change of it in Git arrives, not even one that opens it", r), "apply it from elsewhere, or take " + r.String() + " out of its targets"})
				}
			}
		}
		for _, a := range installs {
			for _, r := range known.needs(a) {
				if scope.Governs(g, known.of(r)) {
					findings = append(findings, Finding{Error, gateName(g), fmt.Sprintf("it holds %s, which installs the controller: while it is closed, nobody can repair the controller from Git", r), "take " + r.String() + " out of its targets"})
				}
			}
		}
	}
	return findings
}
