package view

// Messages shown to users in conditions, the status and errors.
const (
	msgSchemaUnread = "the schema of kind %s of %s cannot be read: %v; fix that, and restart the controller"
	msgUnread       = "cannot be read: "
	msgNotWatched   = "the controller does not watch %s: it runs with --watch-all-namespaces=false"
	msgLabelsUnread = "the labels of namespace %q cannot be read: %w"
	msgSelectsOwn   = "namespaceSelector selects %q, the namespace of the controller, where nothing is held: exclude it with {key: %s, operator: NotIn, values: [%s]}"
	msgLocksUnread  = "GateLocks cannot be read, see the log of the controller"
	msgNotInstalled = "is not installed"
	msgBeingRead    = "is being read"
	msgNotReadable  = "cannot be read, see the log of the controller"
	msgOutOfReach   = "%s in %s cannot be %s from namespace %q: the controller runs with --no-cross-namespace-refs"
)
