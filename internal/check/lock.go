package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Lock finds missing parts of config/lock, which is optional. defined is true if the API server serves GateLocks.
func Lock(a Admission, defined bool, controllers []Controller) (findings []Finding) {
	if !a.any(locking) && !defined {
		return []Finding{{Note, "lock", "it is not installed: any user who may patch a held object can resume it, until the controller holds it again", "to prevent that: kubectl apply --server-side -f lock.yaml"}}
	}
	if !defined {
		findings = append(findings, Finding{Error, "CustomResourceDefinition gatelocks", "it is missing: the policies of the lock have no effect", "kubectl apply --server-side -f lock.yaml"})
	}
	findings = append(findings, a.missing(locking, "lock.yaml")...)
	return append(findings, a.allNamespaces(controllers)...)
}

// twoBindings lists the policies that need a binding for the GateLocks of single namespaces, and another one for the GateLock of all
// namespaces.
var twoBindings = []policy{
	{mutating, "gate-hold", "a new object that a Gate for many namespaces governs is not held from its creation"},
	{validating, "gate-overlay-verb", "any user who may patch an object can add it to the targets of a GateException by a label"},
}

// allNamespaces finds problems with the bindings of the policies that use GateLocks.
func (a Admission) allNamespaces(controllers []Controller) (findings []Finding) {
	for _, p := range twoBindings {
		kind := p.kind + "Binding"
		for _, name := range []string{p.name, p.name + "-all-namespaces"} {
			i := slices.IndexFunc(a, func(u unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
			if i < 0 {
				findings = append(findings, Finding{Error, kind + " " + name, "it is missing: " + p.without, "kubectl apply --server-side -f lock.yaml"})
				continue
			}
			namespace, found, _ := unstructured.NestedString(a[i].Object, "spec", "paramRef", "namespace")
			for _, c := range controllers {
				if found && c.Namespace != namespace {
					findings = append(findings, Finding{Error, kind + " " + name, fmt.Sprintf("it refers to the GateLock of all namespaces in %q, but the controller writes it in %q: %s", namespace, c.Namespace, p.without), "install lock.yaml with that namespace, see docs/reference/gatelocks.md#installing-the-lock"})
				}
			}
		}
	}
	return findings
}
