package target

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories/status,verbs=get;patch

var helmRepository = fields.New[sourcev1.HelmRepository]()

var _ = register(suspend(sourcev1.GroupVersion, sourcev1.HelmRepositoryKind, helmRepository, &helmRepository.Spec.Suspend, &helmRepository.Status.Artifact.Revision))
