package target

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories/status,verbs=get;patch

var _ = register(suspend("source.toolkit.fluxcd.io", "HelmRepository", "status.artifact.revision"))
