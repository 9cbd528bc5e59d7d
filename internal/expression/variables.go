package expression

// The variables of expressions, by field.
var (
	// OfReceiver lists the variables of filter and actionExpr: the body of a webhook, its headers and the claims of its token.
	OfReceiver = []string{"req", "headers", "claims"}
	// OfProvider lists the variables of an OpenID Connect provider: the claims of a token and the provider's own variables.
	OfProvider = []string{"claims", "vars"}
	// OfDependency lists the variables of readyExpr: the dependency and the Gate.
	OfDependency = []string{"dep", "self"}
)
