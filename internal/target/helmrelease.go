package target

// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases/status,verbs=get;patch

var _ = register(suspend("helm.toolkit.fluxcd.io", "HelmRelease", "status.lastAttemptedRevision"))
