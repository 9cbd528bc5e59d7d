package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/version"
)

// buildInfo tells the versions as the labels of a gauge that is always 1, as Prometheus itself does.
func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gating_build_info", Help: "The version of the controller, of its time zone data and of Go; always 1.",
		ConstLabels: prometheus.Labels{"version": version.Release(), "time_zone_data": tz.Version(), "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
