package target

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts/status,verbs=get;patch

var helmChart = fields.New[sourcev1.HelmChart]()

var _ = register(install(suspend(sourcev1.GroupVersion, sourcev1.HelmChartKind, helmChart, &helmChart.Spec.Suspend,
	&helmChart.Status.Artifact.Revision), helmChart, &helmChart.Status.Artifact.Revision))
