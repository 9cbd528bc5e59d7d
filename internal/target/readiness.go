package target

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Readiness is what an object says about its spec as it is.
type Readiness uint8

const (
	// Progressing means that the object has not been ready with this spec.
	Progressing Readiness = iota
	// Rechecking means that the object has been ready with this spec, and is being applied once more.
	Rechecking
	// Ready means that the object is ready with this spec.
	Ready
	// Failed means that the object is not ready with this spec, and says why.
	Failed
)

var (
	observedGenerationPath = []string{"status", "observedGeneration"}
	dependsOnPath          = []string{"spec", "dependsOn"}
)

// passing are the reasons with which Flux says that an object is not ready because it waits, or is about to be tried again, and
// those with which a GatedSource says that nothing is pinned yet.
var passing = []string{"DependencyNotReady", "HealthCheckCanceled", "WaitingApproval", "GateClosed"}

// ReadinessOf returns whether a trimmed object is ready, and what it says about that. An object of a kind that does not say
// it is ready.
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
	observed, known, _ := unstructured.NestedInt64(obj.Object, observedGenerationPath...)
	wasReady := known && observed == obj.GetGeneration()
	if c := isNow("Stalled", metav1.ConditionTrue); c != nil {
		return Failed, c.Message
	}
	if c := isNow("Ready", metav1.ConditionFalse); c != nil && !slices.Contains(passing, c.Reason) {
		return Failed, c.Message
	}
	has := obj.condition("Ready")
	switch {
	case has == nil && !saysReady(obj.GroupVersionKind().GroupKind()):
		return Ready, ""
	case has == nil:
		return Progressing, ""
	case (wasReady || !known) && isNow("Ready", metav1.ConditionTrue) != nil && isNow("Reconciling", metav1.ConditionTrue) == nil:
		return Ready, has.Message
	case wasReady && obj.GroupVersionKind().GroupKind() != GatedSource: // another revision does not change its spec
		return Rechecking, has.Message
	}
	return Progressing, has.Message
}

// IsReady returns whether an object is ready with its current spec, and why not. Conditions of an earlier generation don't count, and
// an object that is suspended, stalled or being deleted is not ready. wasReady says that the object was ready at the last check: it
// stays ready while Flux reconciles the same spec again, because Flux sets Ready to Unknown at each interval.
func IsReady(obj *Object, wasReady bool) (ready bool, message string) {
	condition := obj.condition("Ready")
	switch {
	case obj.GetDeletionTimestamp() != nil:
		return false, "is being deleted"
	case isSuspended(obj):
		return false, "is suspended"
	case condition == nil:
		return false, "has no condition Ready"
	}
	readiness, message := ReadinessOf(obj)
	reconciles := condition.Status == metav1.ConditionTrue || condition.Status == metav1.ConditionUnknown && condition.Reason == "Progressing"
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
	adapter, ok := Of(&obj.Unstructured).(suspendable)
	if !ok {
		return false
	}
	suspended, _, _ := unstructured.NestedBool(obj.Object, adapter.field...)
	return suspended
}

// saysReady returns whether the objects of a kind have the condition Ready as soon as somebody has looked at them.
func saysReady(kind schema.GroupKind) bool { return isFlux(kind) || kind == Certificate }

func isFlux(kind schema.GroupKind) bool { return strings.HasSuffix(kind.Group, ".toolkit.fluxcd.io") }

// Needs returns the objects that a trimmed object of Flux names in spec.dependsOn, which are of its kind.
func Needs(obj *Object) []Key {
	if !isFlux(obj.GroupVersionKind().GroupKind()) {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, dependsOnPath...)
	list, _ := value.([]any)
	var keys []Key
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		if name == "" {
			continue
		}
		namespace, _ := fields["namespace"].(string)
		if namespace == "" {
			namespace = obj.GetNamespace()
		}
		keys = append(keys, Key{obj.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return keys
}
