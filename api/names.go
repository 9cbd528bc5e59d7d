// Package api declares the names that would change if Flux adopted this API. Other
// Go code of the product must not contain them as literals.
package api

const (
	// Group is the API group. It is the group of RFC 004, which Flux has not
	// adopted.
	Group = "gating.toolkit.fluxcd.io"

	// InternalGroup is the group of the types that only the controller and its
	// policies use.
	InternalGroup = "internal." + Group

	// ReportGroup is the group of the reports that kubectl gate prints as JSON. No
	// API server serves it.
	ReportGroup = "cli." + Group

	// RequestDomain is the domain of the annotations with which users make
	// requests. Each is <verb>.gate.fluxcd.io/<name>, as in RFC 004.
	RequestDomain = "gate.fluxcd.io"

	// Module is the path of the Go module.
	Module = "github.com/fluxcd/gating-controller"
)
