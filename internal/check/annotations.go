package check

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
)

// Annotations finds unknown annotations with one of our prefixes on Gates, exceptions and targets.
func Annotations(gates []v1alpha1.Gate, exceptions []*v1alpha1.GateException, objects []*unstructured.Unstructured) (findings []Finding) {
	add := func(name string, values map[string]string) {
		for _, p := range annotations.Unknown(values) {
			findings = append(findings, Finding{Warning, name, "annotation " + p.Key + ": " + p.Cause, "correct or remove the annotation: docs/reference/annotations.md lists all"})
		}
	}
	for i := range gates {
		add(gateName(&gates[i]), gates[i].Annotations)
	}
	for _, e := range exceptions {
		add(v1alpha1.GateExceptionKind+" "+e.Namespace+"/"+e.Name, e.Annotations)
	}
	for _, obj := range objects {
		add(nameOf(obj), obj.GetAnnotations())
	}
	return findings
}
