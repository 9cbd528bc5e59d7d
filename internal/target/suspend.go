package target

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// suspendable is the adapter of the kinds of Flux, which have spec.suspend.
type suspendable struct {
	groupKind schema.GroupKind
}

func suspend(group, kind string) Adapter {
	return suspendable{schema.GroupKind{Group: group, Kind: kind}}
}

func (s suspendable) GroupKind() schema.GroupKind { return s.groupKind }

func (suspendable) lever() []string { return []string{"spec", "suspend"} }

func (s suspendable) Observe(obj *Object, us Identity) State {
	if suspended, _, err := unstructured.NestedBool(obj.Object, s.lever()...); err != nil || !suspended {
		return Free
	}
	_, named := obj.GetAnnotations()[us.HeldBy]
	ours, others := us.owners(obj, s.lever())
	nameOurs, _ := us.owners(obj, us.heldByPath())
	switch {
	case ours && (nameOurs || !named):
		return Held
	case named && !nameOurs:
		return Locked
	case named && !others:
		return Overridden
	}
	return Foreign
}

func (s suspendable) Hold(config *unstructured.Unstructured) {
	config.Object["spec"] = map[string]any{"suspend": true}
}
