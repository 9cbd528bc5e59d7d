package target

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations/status,verbs=get;patch

var kustomization = fields.New[kustomizev1.Kustomization]()

var _ = register(suspend(kustomizev1.GroupVersion, kustomizev1.KustomizationKind, kustomization, &kustomization.Spec.Suspend,
	&kustomization.Status.LastAppliedRevision, &kustomization.Status.LastAttemptedRevision))
