package gatedsource

// Messages shown to users in conditions and events.
const (
	msgAwaitsSlot  = "It waits for a release slot, because its gate limits the rate of releases."
	msgApproved    = "Revision '%s' approved by %s%s"
	msgVoided      = "Approval of '%s' by %s is void: another revision was promoted, or the spec of the source has changed"
	msgPromoted    = "Promoted '%s' from '%s' (%s)%s"
	msgApprovedBy  = ", approved by "
	msgRequestedBy = ", requested by "
)
