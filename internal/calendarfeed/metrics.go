package calendarfeed

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count requests for calendars.
type Metrics struct{ responses *prometheus.CounterVec }

// MustMakeMetrics registers the metrics of calendars. It panics if that fails.
func MustMakeMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{responses: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gating_calendar_requests_total",
		Help: "Number of requests for calendars by CalendarFeed, empty for an unknown path, and by status code of the response.",
	}, []string{"name", "namespace", "code"})}
	registry.MustRegister(m.responses)
	return m
}

func (m *Metrics) count(e *entry, code int) {
	name, namespace := "", ""
	if e != nil {
		name, namespace = e.key.Name, e.key.Namespace
	}
	m.responses.WithLabelValues(name, namespace, strconv.Itoa(code)).Inc()
}
