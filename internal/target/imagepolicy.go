package target

// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagepolicies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagepolicies/status,verbs=get;patch

var _ = register(suspend("image.toolkit.fluxcd.io", "ImagePolicy", "status.latestRef.tag"))
