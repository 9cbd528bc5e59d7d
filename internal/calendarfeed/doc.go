// Package calendarfeed serves CalendarFeeds. Users subscribe to these calendars to see the plans of Gates. The package responds from
// caches, without requests to the API server.
package calendarfeed

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds/status,verbs=get;patch
