package target

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories/status,verbs=get;patch

var _ = register(suspend("source.toolkit.fluxcd.io", "OCIRepository", "status.artifact.revision"))
