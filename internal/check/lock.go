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

// allNamespaces finds problems with the GateLock of all namespaces. Each policy needs a binding for this GateLock, and another one for
// the GateLocks of single namespaces.
func (a Admission) allNamespaces(controllers []Controller) (findings []Finding) {
	const kind, without = "MutatingAdmissionPolicyBinding", "a new object that a Gate for many namespaces governs is not held from its creation"
	for _, name := range []string{"gate-hold", "gate-hold-all-namespaces"} {
		i := slices.IndexFunc(a, func(u unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
		if i < 0 {
			findings = append(findings, Finding{Error, kind + " " + name, "it is missing: " + without, "kubectl apply --server-side -f lock.yaml"})
			continue
		}
		namespace, found, _ := unstructured.NestedString(a[i].Object, "spec", "paramRef", "namespace")
		for _, c := range controllers {
			if found && c.Namespace != namespace {
				findings = append(findings, Finding{Error, kind + " " + name, fmt.Sprintf("it refers to the GateLock of all namespaces in %q, but the controller has it in %q: %s", namespace, c.Namespace, without), "install lock.yaml with that namespace, see docs/reference/gatelocks.md#installing-the-lock"})
			}
		}
	}
	return findings
}
