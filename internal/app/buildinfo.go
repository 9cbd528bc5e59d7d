package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/version"
)

// buildInfo returns a gauge that is always 1, with the versions as labels, like Prometheus itself does.
func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gating_build_info", Help: "Version of the controller, of its time zone data and of Go; always 1.",
		ConstLabels: prometheus.Labels{"version": version.Release(), "time_zone_data": tz.Version(), "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
