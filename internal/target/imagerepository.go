package target

// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagerepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagerepositories/status,verbs=get;patch

var _ = register(suspend("image.toolkit.fluxcd.io", "ImageRepository", "status.lastScanResult.revision"))
