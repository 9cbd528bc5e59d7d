package check

// Lock finds what is missing of config/lock, which nobody needs to have. Defined says whether the API server serves GateLocks.
func Lock(a Admission, defined bool) (findings []Finding) {
	if !a.any(locking) && !defined {
		return []Finding{{Note, "lock", "it is not installed: whoever may patch a held object can resume it, until the controller holds it again", "if that is not enough: kubectl apply --server-side -f lock.yaml"}}
	}
	if !defined {
		findings = append(findings, Finding{Error, "CustomResourceDefinition gatelocks", "it is missing: the policies of the lock find nothing to go by", "kubectl apply --server-side -f lock.yaml"})
	}
	return append(findings, a.missing(locking, "lock.yaml")...)
}
