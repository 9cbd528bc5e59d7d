// Package receivers accepts requests for Gates over HTTP, with one verifier per file.
package receivers

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gates,verbs=open;close
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatereceivers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatereceivers/status,verbs=get;patch
