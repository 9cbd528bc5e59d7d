package exception

// Messages shown to users in conditions and events.
const (
	msgUncounted   = "the approvals in its annotations do not count, because the policy gate-exception-stamp is missing or cannot be read"
	msgNotApproved = "Exception is not approved: "
	msgInterrupted = "Exception does not apply at present: "
	msgApproved    = "Exception approved by %s"
	msgVoided      = "Approval by %s is void: the exception was edited since %s"
	msgDeleted     = "Exception no longer applies: it was deleted"
)
