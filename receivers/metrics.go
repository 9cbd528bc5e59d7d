package receivers

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics count webhooks.
type Metrics struct{ responses *prometheus.CounterVec }

// MustMakeMetrics registers the metrics of webhooks and panics if that fails.
func MustMakeMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{responses: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gating_webhooks_total",
		Help: "Number of webhooks by receiver, empty if the sender is not verified, and by status code of the response.",
	}, []string{"name", "namespace", "code"})}
	registry.MustRegister(m.responses)
	return m
}

func (m *Metrics) count(key types.NamespacedName, code int) {
	m.responses.WithLabelValues(key.Name, key.Namespace, strconv.Itoa(code)).Inc()
}
