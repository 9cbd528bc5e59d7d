package target

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts/status,verbs=get;patch

var _ = register(suspend("source.toolkit.fluxcd.io", "HelmChart", "status.artifact.revision"))
