package activation

// Messages shown to users in conditions, events, the history, errors and logs.
const (
	msgTargetIsStaged   = "Secret '%s' is the one that cert-manager writes: activate into another one than spec.secretName"
	msgPreviousIsStaged = "Secret '%s' is the one that cert-manager writes, and would get the previous data: choose another spec.secretName"
	msgPreviousTaken    = "Secret '%s' is needed for the previous data, but does not belong to the controller: delete it, or activate into another"
	msgOtherCertificate = "Secret '%s' is the one of Certificate '%s' (annotation %s): activate into another"
	msgCertManagers     = "Secret '%s' belongs to cert-manager (label %s): activate into another"
	msgOtherActivation  = "Certificate '%s' activates into Secret '%s': activate into another, or remove the annotation %s from the Secret"
	msgControlled       = "Secret '%s' is controlled by %s: activate into another"
	msgImmutable        = "Secret '%s' is immutable: delete it, or activate into another"
	msgWrongType        = "Secret '%s' is of type %s: delete it so that it is created again with type %s, or activate into another"
)
