package target

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories/status,verbs=get;patch

var _ = register(suspend("source.toolkit.fluxcd.io", "GitRepository", "status.artifact.revision"))
