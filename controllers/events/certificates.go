package events

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// heldCertificates collects the validity of certificates whose renewal is held. It lists the certificates at each scrape, so that deleted
// certificates disappear.
type heldCertificates struct {
	begins, expires *prometheus.Desc
	list            func(context.Context) ([]*target.Object, error)
}

// NewHeldCertificates returns a collector of metrics about the held Certificates returned by list.
func NewHeldCertificates(list func(context.Context) ([]*target.Object, error)) *heldCertificates {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("gating_certificate_held_"+name+"_timestamp_seconds", help, []string{"name", "namespace"}, nil)
	}
	return &heldCertificates{
		list:    list,
		begins:  describe("not_before", "Unix time from which a certificate with a held renewal is valid."),
		expires: describe("expiration", "Unix time at which a certificate with a held renewal expires."),
	}
}

// Describe implements prometheus.Collector.
func (h *heldCertificates) Describe(ch chan<- *prometheus.Desc) {
	ch <- h.begins
	ch <- h.expires
}

// Collect implements prometheus.Collector.
func (h *heldCertificates) Collect(ch chan<- prometheus.Metric) {
	all, err := h.list(context.Background())
	if err != nil {
		// Reading the cache fails only while the process shuts down.
		ctrl.Log.WithName("metrics").Error(err, "unable to list certificates")
	}
	for _, obj := range all {
		if len(verdict.HeldBy(&obj.Unstructured)) == 0 || target.Of(&obj.Unstructured).Observe(obj, verdict.Us) != target.Held {
			continue
		}
		for field, desc := range map[string]*prometheus.Desc{"notBefore": h.begins, "notAfter": h.expires} {
			value, _, _ := unstructured.NestedString(obj.Object, "status", field)
			if at, err := time.Parse(time.RFC3339, value); err == nil {
				ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(at.Unix()), obj.GetName(), obj.GetNamespace())
			}
		}
	}
}
