package target

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations/status,verbs=get;patch

var kustomization = fields.New[kustomizev1.Kustomization]()

var _ = register(kustomizations{installable: install(suspend(kustomizev1.GroupVersion, kustomizev1.KustomizationKind, kustomization,
	&kustomization.Spec.Suspend, &kustomization.Status.LastAppliedRevision, &kustomization.Status.LastAttemptedRevision),
	kustomization, &kustomization.Status.LastAppliedRevision)})

var appliedPath = fields.Path(kustomization, &kustomization.Status.LastAppliedRevision)

// kustomizations is the adapter of Kustomizations.
type kustomizations struct {
	installable
	follower
}

// Applied implements Applier.
func (kustomizations) Applied(obj *unstructured.Unstructured) string { return textAt(obj, appliedPath) }

// Pending implements Applier.
func (k kustomizations) Pending(obj, source *unstructured.Unstructured) (string, bool) {
	return newer(k.Applied(obj), source)
}
