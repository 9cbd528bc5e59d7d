// Package feed serves GateCalendars: the plans of Gates, as calendars to which people subscribe. It answers from caches, and asks the API server for
// nothing when it is asked.
package feed

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatecalendars,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatecalendars/status,verbs=get;patch
