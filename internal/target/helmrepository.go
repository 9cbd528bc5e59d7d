package target

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories/status,verbs=get;patch

var helmRepository = fields.New[sourcev1.HelmRepository]()

var _ = register(helmRepositories{install(suspend(sourcev1.GroupVersion, sourcev1.HelmRepositoryKind,
	helmRepository, &helmRepository.Spec.Suspend, &helmRepository.Status.Artifact.Revision),
	helmRepository, &helmRepository.Status.Artifact.Revision)})

var repositoryTypePath = fields.Path(helmRepository, &helmRepository.Spec.Type)

// helmRepositories is the adapter of HelmRepositories.
type helmRepositories struct{ installable }

func (h helmRepositories) reads() [][]string {
	return append(h.installable.reads(), repositoryTypePath)
}

// HasSucceeded implements Installer. A HelmRepository of type oci is only data and has no status, so its first success is unknown.
func (h helmRepositories) HasSucceeded(obj *Object) bool {
	return text(obj, repositoryTypePath) == sourcev1.HelmRepositoryTypeOCI || h.installable.HasSucceeded(obj)
}
