package machine

// Messages shown to users in conditions and events.
const (
	msgNotInstalled  = "kind Machine of cluster.x-k8s.io is not installed"
	msgGateUndecided = "Gate %s has not been reconciled yet"
	msgForbidden     = "No refresh begins: Gate %s %s"
	msgRequested     = "MachineCertificateRefresh %s requested certificates valid for %s: %s"
	msgGatesOpen     = "its Gates are open"
	msgExpiring      = "the certificates expire at %s, although Gate %s is closed"
	msgRefreshFailed = "Refresh of the certificates failed: %s"
	msgRefreshed     = "Certificates have been refreshed: %s"
	msgStopped       = "Machine %s: %s. No other refresh begins until the Gates open again, the spec is changed or %s is set"
	msgGateMissing   = "does not exist"
	msgGateInvalid   = "has an invalid spec"
	msgGateAudits    = "has mode Audit"
	msgGateSuspended = "is suspended"
)
