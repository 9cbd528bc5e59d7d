// Package calendarfeed serves CalendarFeeds: the plans of Gates, as calendars to which users subscribe. It responds from caches, without
// requests to the API server.
package calendarfeed

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds/status,verbs=get;patch
