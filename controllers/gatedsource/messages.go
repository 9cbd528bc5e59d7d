package gatedsource

// Messages shown to users in conditions and events.
const (
	msgAwaitsSlot = "It waits for its turn: its gate releases its targets at a pace."
	msgApproved   = "Revision '%s' approved by %s%s"
	msgVoided     = "Approval of '%s' by %s is void: another revision was promoted, or the spec of the source has changed"
	msgPromoted   = "Promoted '%s' from '%s' (%s)%s"
	msgApprovedBy = ", approved by "
)
