// Package receivers takes requests for Gates over HTTP, one verifier per file.
package receivers

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gates,verbs=open;close
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatereceivers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatereceivers/status,verbs=get;patch
