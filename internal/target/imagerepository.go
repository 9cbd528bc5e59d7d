package target

import (
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagerepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imagerepositories/status,verbs=get;patch

var imageRepository = fields.New[imagev1.ImageRepository]()

var _ = register(install(suspend(imagev1.GroupVersion, imagev1.ImageRepositoryKind, imageRepository, &imageRepository.Spec.Suspend,
	&imageRepository.Status.LastScanResult.Revision), imageRepository, &imageRepository.Status.LastScanResult.TagCount))
