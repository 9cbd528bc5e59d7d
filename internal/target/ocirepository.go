package target

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories/status,verbs=get;patch

var ociRepository = fields.New[sourcev1.OCIRepository]()

var _ = register(install(suspend(sourcev1.GroupVersion, sourcev1.OCIRepositoryKind, ociRepository, &ociRepository.Spec.Suspend,
	&ociRepository.Status.Artifact.Revision), ociRepository, &ociRepository.Status.Artifact.Revision))
