package webauth

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count requests for pages, and reviews.
type Metrics struct {
	requests, reviews *prometheus.CounterVec
}

// MustMakeMetrics registers the metrics of pages and panics if that fails.
func MustMakeMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gating_ui_requests_total",
			Help: "Number of requests for pages by page (its path without names) and status code.",
		}, []string{"page", "code"}),
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gating_ui_reviews_total",
			Help: "Number of reviews of viewers by the API server, by kind (token or access) and answer (yes, no or error).",
		}, []string{"kind", "answer"}),
	}
	registry.MustRegister(m.requests, m.reviews)
	return m
}

func (m *Metrics) reviewed(kind string, yes bool) {
	m.reviews.WithLabelValues(kind, map[bool]string{true: "yes", false: "no"}[yes]).Inc()
}

func (m *Metrics) failed(kind string) { m.reviews.WithLabelValues(kind, "error").Inc() }

// statusRecorder records the status code of a response.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (a *statusRecorder) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (a *statusRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// counting wraps a handler and counts its responses by path and status code.
func (m *Metrics) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &statusRecorder{w, http.StatusOK}
		defer func() {
			_, path, _ := strings.Cut(r.Pattern, "/")
			m.requests.WithLabelValues("/"+strings.TrimSuffix(path, "{$}"), strconv.Itoa(a.code)).Inc()
		}()
		next.ServeHTTP(a, r)
	})
}
