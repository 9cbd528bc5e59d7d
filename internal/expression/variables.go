package expression

// The variables of expressions, by the fields that have them.
var (
	// OfReceiver are those of filter and actionExpr: the body of a webhook, its headers and the claims of its token.
	OfReceiver = []string{"req", "headers", "claims"}
	// OfProvider are those of an OpenID Connect provider: the claims of a token and the provider's own variables.
	OfProvider = []string{"claims", "vars"}
	// OfDependency are those of readyExpr: the dependency and the Gate.
	OfDependency = []string{"dep", "self"}
)
