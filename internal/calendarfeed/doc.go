// Package calendarfeed serves CalendarFeeds, which are calendars with the plans of Gates that users can subscribe to. It responds from
// caches, without requests to the API server.
package calendarfeed

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds/status,verbs=get;patch
