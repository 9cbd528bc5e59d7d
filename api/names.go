// Package api declares the names that would change if Flux adopted this API.
// Other Go code of the product must not contain them as literals.
package api

const (
	// Group is the API group. The Flux RFC 004, which Flux has not adopted,
	// proposes it.
	Group = "gating.toolkit.fluxcd.io"

	// InternalGroup is the API group of the types that only the controller and its
	// admission policies use.
	InternalGroup = "internal." + Group

	// ReportGroup is the API group of the JSON and YAML output of kubectl gate. No
	// API server serves it.
	ReportGroup = "cli." + Group

	// RequestDomain is the domain of the request annotations. Their keys have the
	// form <verb>.gate.fluxcd.io/<name>, as in RFC 004.
	RequestDomain = "gate.fluxcd.io"

	// Module is the path of the Go module.
	Module = "github.com/fluxcd/gating-controller"
)
