package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Lock finds what is missing of config/lock, which nobody needs to have. Defined says whether the API server serves GateLocks.
func Lock(a Admission, defined bool, controllers []Controller) (findings []Finding) {
	if !a.any(locking) && !defined {
		return []Finding{{Note, "lock", "it is not installed: whoever may patch a held object can resume it, until the controller holds it again", "if that is not enough: kubectl apply --server-side -f lock.yaml"}}
	}
	if !defined {
		findings = append(findings, Finding{Error, "CustomResourceDefinition gatelocks", "it is missing: the policies of the lock find nothing to go by", "kubectl apply --server-side -f lock.yaml"})
	}
	findings = append(findings, a.missing(locking, "lock.yaml")...)
	return append(findings, a.allNamespaces(controllers)...)
}

// allNamespaces finds what keeps the GateLock of all namespaces from being read: a policy has one binding for it and one for those of single
// namespaces.
func (a Admission) allNamespaces(controllers []Controller) (findings []Finding) {
	const kind, without = "MutatingAdmissionPolicyBinding", "a new object that a Gate for many namespaces governs is not held from its first moment"
	for _, name := range []string{"gate-hold", "gate-hold-all-namespaces"} {
		i := slices.IndexFunc(a, func(u unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
		if i < 0 {
			findings = append(findings, Finding{Error, kind + " " + name, "it is missing: " + without, "kubectl apply --server-side -f lock.yaml"})
			continue
		}
		namespace, found, _ := unstructured.NestedString(a[i].Object, "spec", "paramRef", "namespace")
		for _, c := range controllers {
			if found && c.Namespace != namespace {
				findings = append(findings, Finding{Error, kind + " " + name, fmt.Sprintf("it looks for the GateLock of all namespaces in %q, and the controller has it in %q: %s", namespace, c.Namespace, without), "install lock.yaml with that namespace, see docs/reference/gatelocks.md#installing-the-lock"})
			}
		}
	}
	return findings
}
