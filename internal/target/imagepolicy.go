package target

import (
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagepolicies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagepolicies/status,verbs=get;patch

var imagePolicy = fields.New[imagev1.ImagePolicy]()

var _ = register(install(suspend(imagev1.GroupVersion, imagev1.ImagePolicyKind, imagePolicy, &imagePolicy.Spec.Suspend,
	&imagePolicy.Status.LatestRef.Tag), imagePolicy, &imagePolicy.Status.LatestRef.Tag))
