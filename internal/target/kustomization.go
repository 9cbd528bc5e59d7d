package target

// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations/status,verbs=get;patch

var _ = register(suspend("kustomize.toolkit.fluxcd.io", "Kustomization", "status.lastAppliedRevision", "status.lastAttemptedRevision"))
