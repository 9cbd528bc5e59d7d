package target

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases/status,verbs=get;patch

var helmRelease = fields.New[helmv2.HelmRelease]()

var _ = register(suspend(helmv2.GroupVersion, helmv2.HelmReleaseKind, helmRelease, &helmRelease.Spec.Suspend, &helmRelease.Status.LastAttemptedRevision))
