package calendars

// Messages shown to users in conditions, the status and errors.
const (
	msgUnread     = "the ConfigMap %s of a calendar cannot be read: %w"
	msgPending    = "the calendars of the gate have not been read yet"
	msgMissing    = "does not exist"
	msgForbidden  = "the controller may not read it: install config/calendars, or grant the controller a Role"
	msgOverBudget = "exceeds the memory of its namespace for calendars: use smaller calendars"
)
