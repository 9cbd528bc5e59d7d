// Package calendarfeed serves CalendarFeeds: the plans of Gates, as calendars to which people subscribe. It answers from caches, and asks the API server for
// nothing when it is asked.
package calendarfeed

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=calendarfeeds/status,verbs=get;patch
