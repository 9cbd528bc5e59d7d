package activation

// Messages shown to users in conditions, events, the history, errors and logs.
const (
	msgTargetIsStaged   = "Secret '%s' is spec.secretName, which cert-manager writes: activate into another Secret"
	msgPreviousIsStaged = "Secret '%s' would get the previous data, but is spec.secretName, which cert-manager writes: choose another spec.secretName"
	msgPreviousTaken    = "Secret '%s' is needed for the previous data, but does not belong to the controller: delete it, or activate into another Secret"
	msgOtherCertificate = "Secret '%s' belongs to Certificate '%s' (annotation %s): activate into another Secret"
	msgCertManagers     = "Secret '%s' belongs to cert-manager (label %s): activate into another Secret"
	msgOtherActivation  = "Certificate '%s' activates into Secret '%s': activate into another Secret, or remove the annotation %s from the Secret"
	msgControlled       = "Secret '%s' is controlled by %s: activate into another Secret"
	msgImmutable        = "Secret '%s' is immutable: delete it, or activate into another Secret"
	msgWrongType        = "Secret '%s' is of type %s: delete it so that it is created again with type %s, or activate into another Secret"
)
