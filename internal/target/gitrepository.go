package target

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories/status,verbs=get;patch

var gitRepository = fields.New[sourcev1.GitRepository]()

var _ = register(install(suspend(sourcev1.GroupVersion, sourcev1.GitRepositoryKind, gitRepository, &gitRepository.Spec.Suspend,
	&gitRepository.Status.Artifact.Revision), gitRepository, &gitRepository.Status.Artifact.Revision))
