package target

import (
	automationv1 "github.com/fluxcd/image-automation-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imageupdateautomations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=image.toolkit.fluxcd.io,resources=imageupdateautomations/status,verbs=get;patch

var imageUpdateAutomation = fields.New[automationv1.ImageUpdateAutomation]()

var _ = register(install(suspend(automationv1.GroupVersion, automationv1.ImageUpdateAutomationKind, imageUpdateAutomation,
	&imageUpdateAutomation.Spec.Suspend, &imageUpdateAutomation.Status.LastPushCommit),
	imageUpdateAutomation, &imageUpdateAutomation.Status.LastAutomationRunTime, &imageUpdateAutomation.Status.ObservedSourceRevision,
	&imageUpdateAutomation.Status.LastPushCommit))
