package target

// Messages about activations and waves. The messages of the conditions Approved and RenewalApproved are in internal/verdict.
const (
	msgActivatedEarly      = "Activated into Secret '%s' although %s: certificate %s, which expires at %s; the previous one expires at %s"
	msgActivated           = "Activated into Secret '%s': certificate %s, which expires at %s"
	msgNotActivated        = "Not activated into Secret '%s': %s"
	msgActivationForbidden = "the controller lacks the permission, install config/activation: "
	msgOpensAt             = " (opens at %s, %s)"
	msgUnknownGate         = "a gate that governs it"
	msgInUse               = " The certificate in use expires at %s."
	msgIsActivated         = "Secret '%s' has the issued certificate.%s"
	msgRolledBack          = "A user has changed Secret '%s' since the certificate was activated. It stays unchanged until the next issuance.%s"
	msgNotIssued           = "There is no certificate in Secret '%s' yet."
	msgNotYetValid         = "Certificate %s is not valid before %s.%s"
	msgWaits               = "Certificate %s waits for %s.%s"
	msgReplacedBy          = " It is replaced at %s at the latest."
	msgLocked              = "waits until it is unlocked"
	msgHeldBy              = "held by "
	msgPassing             = ", a pass allows one reconciliation"
)
