package view

// Messages for users: in conditions, the status and errors.
const (
	msgSchemaUnread = "the schema of kind %s of %s cannot be read: %v; fix that, and restart the controller"
	msgUnread       = "cannot be read: "
)
