package target

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets/status,verbs=get;patch

var _ = register(suspend("source.toolkit.fluxcd.io", "Bucket", "status.artifact.revision"))
