package target

// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imageupdateautomations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imageupdateautomations/status,verbs=get;patch

var _ = register(suspend("image.toolkit.fluxcd.io", "ImageUpdateAutomation", "status.lastPushCommit"))
