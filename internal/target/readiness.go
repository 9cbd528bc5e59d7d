package target

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/internal/fields"
)

// Readiness is the readiness of an object with its current spec.
type Readiness uint8

const (
	// Progressing means that the object has not been ready with this spec yet.
	Progressing Readiness = iota
	// Rechecking means that the object has been ready with this spec, and is being reconciled again.
	Rechecking
	// Ready means that the object is ready with this spec.
	Ready
	// Failed means that the object is not ready with this spec. Its conditions contain the reason.
	Failed
)

var (
	// ObservedGenerationPath is the path of the generation that a Flux controller has observed last.
	ObservedGenerationPath = fields.Path(kustomization, &kustomization.Status.ObservedGeneration)
	dependsOnPath          = fields.Path(kustomization, &kustomization.Spec.DependsOn)

	dependency          = &kustomizev1.DependencyReference{}
	dependencyName      = fields.Name(dependency, &dependency.Name)
	dependencyNamespace = fields.Name(dependency, &dependency.Namespace)
)

// passing lists the reasons that Flux reports for an object that is not ready only because it waits or is about to be retried, and the
// reasons of a GatedSource without a pin.
var passing = []string{fluxmeta.DependencyNotReadyReason, fluxmeta.HealthCheckCanceledReason, "WaitingApproval", "GateClosed"}

// ReadinessOf returns the readiness of a trimmed object and the message of its condition. An object of a kind that does not report
// readiness is ready.
func ReadinessOf(obj *Object) (Readiness, string) {
	conditions := obj.GetConditions()
	isNow := func(name string, status metav1.ConditionStatus) *metav1.Condition {
		i := slices.IndexFunc(conditions, func(c metav1.Condition) bool {
			return c.Type == name && c.Status == status && (c.ObservedGeneration == 0 || c.ObservedGeneration == obj.GetGeneration())
		})
		if i < 0 {
			return nil
		}
		return &conditions[i]
	}
	observed, known, _ := unstructured.NestedInt64(obj.Object, ObservedGenerationPath...)
	wasReady := known && observed == obj.GetGeneration()
	if c := isNow(fluxmeta.StalledCondition, metav1.ConditionTrue); c != nil {
		return Failed, c.Message
	}
	if c := isNow(fluxmeta.ReadyCondition, metav1.ConditionFalse); c != nil && !slices.Contains(passing, c.Reason) {
		return Failed, c.Message
	}
	has := obj.condition(fluxmeta.ReadyCondition)
	switch {
	case has == nil && !reportsReady(obj.GroupVersionKind().GroupKind()):
		return Ready, ""
	case has == nil:
		return Progressing, ""
	case (wasReady || !known) && isNow(fluxmeta.ReadyCondition, metav1.ConditionTrue) != nil && isNow(fluxmeta.ReconcilingCondition, metav1.ConditionTrue) == nil:
		return Ready, has.Message
	case wasReady && obj.GroupVersionKind().GroupKind() != GatedSource: // another revision is not a change of its spec
		return Rechecking, has.Message
	}
	return Progressing, has.Message
}

// IsReady returns whether an object is ready with its current spec, and if not, why. Conditions of an earlier generation do not count,
// and an object that is suspended, stalled or being deleted is not ready. wasReady is true if the object was ready at the last check.
// In that case, it stays ready while Flux reconciles the same spec, because Flux sets Ready to Unknown at each interval.
func IsReady(obj *Object, wasReady bool) (ready bool, message string) {
	condition := obj.condition(fluxmeta.ReadyCondition)
	switch {
	case obj.GetDeletionTimestamp() != nil:
		return false, "is being deleted"
	case isSuspended(obj):
		return false, "is suspended"
	case condition == nil:
		return false, "has no condition Ready"
	}
	readiness, message := ReadinessOf(obj)
	reconciles := condition.Status == metav1.ConditionTrue || condition.Status == metav1.ConditionUnknown && condition.Reason == fluxmeta.ProgressingReason
	switch {
	case readiness == Ready, readiness == Rechecking && wasReady && reconciles:
		return true, ""
	case readiness == Failed && condition.Status == metav1.ConditionTrue:
		return false, "is stalled: " + message
	case readiness == Progressing && condition.Status == metav1.ConditionTrue:
		return false, fmt.Sprintf("has not reported on generation %d yet", obj.GetGeneration())
	}
	return false, condition.Reason + ": " + message
}

// isSuspended returns whether the field that suspends objects of the kind is set.
func isSuspended(obj *Object) bool {
	adapter, ok := As[Suspender](&obj.Unstructured)
	return ok && adapter.IsSuspended(obj)
}

// reportsReady returns whether a controller sets the condition Ready on each object of the kind.
func reportsReady(kind schema.GroupKind) bool { return isFlux(kind) || kind == Certificate }

// fluxGroups are the API groups of Flux and of this project.
var fluxGroups = []string{
	sourcev1.GroupVersion.Group, kustomizev1.GroupVersion.Group, helmv2.GroupVersion.Group, imagev1.GroupVersion.Group,
	notificationv1.GroupVersion.Group, api.Group,
}

func isFlux(kind schema.GroupKind) bool { return slices.Contains(fluxGroups, kind.Group) }

// Needs returns the keys of the objects in spec.dependsOn of a trimmed Flux object, which have the same kind. For other kinds, it returns
// nil.
func Needs(obj *Object) []Key {
	if !isFlux(obj.GroupVersionKind().GroupKind()) {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, dependsOnPath...)
	list, _ := value.([]any)
	var keys []Key
	for _, item := range list {
		needed, _ := item.(map[string]any)
		name, _ := needed[dependencyName].(string)
		if name == "" {
			continue
		}
		namespace, _ := needed[dependencyNamespace].(string)
		if namespace == "" {
			namespace = obj.GetNamespace()
		}
		keys = append(keys, Key{obj.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return keys
}
