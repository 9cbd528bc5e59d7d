// Package calendarfeed serves CalendarFeeds: calendars with the plans of Gates, to which users subscribe. It responds from caches, without
// requests to the API server.
package calendarfeed

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds/status,verbs=get;patch
