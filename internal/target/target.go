// Package target knows how each kind of object is held. It works on objects in
// memory and has no client.
//
// A new kind is one new file: a call of register and its RBAC markers.
package target

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State of a target.
type State uint8

const (
	// Free to be reconciled.
	Free State = iota
	// Held by us. Somebody else may hold it as well.
	Held
	// Locked means held by the lock, an admission policy, in the name of Gates. It
	// is ours to take over: what a policy has written belongs to nobody.
	Locked
	// Overridden is Held after somebody took the hold away and the lock put it back.
	Overridden
	// Foreign means held by somebody else alone.
	Foreign
)

// Adapter is the way to hold objects of one kind.
type Adapter interface {
	// GroupKind that the adapter is for.
	GroupKind() schema.GroupKind

	// Observe returns the state of a trimmed object, see Trim.
	Observe(obj *Object, us Identity) State

	// Hold adds what holds an object to a configuration for server-side apply.
	// Applying one without it releases the object, unless somebody else holds
	// it, too.
	Hold(config *unstructured.Unstructured)

	// lever is the path of the field that holds an object.
	lever() []string
}

var registry = map[schema.GroupKind]Adapter{}

// register returns the adapter so that it can be called in a declaration.
func register(a Adapter) Adapter { //nolint:unparam // a result is what makes it a declaration
	registry[a.GroupKind()] = a
	return a
}

// All returns the adapters of all supported kinds, sorted by group and kind.
func All() []Adapter {
	var all []Adapter
	for _, a := range registry {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Adapter) int {
		return strings.Compare(a.GroupKind().String(), b.GroupKind().String())
	})
	return all
}

// For returns the adapter of a kind. The version of apiVersion does not matter.
// An empty apiVersion means the only supported group that has the kind.
func For(apiVersion, kind string) (Adapter, error) {
	if apiVersion != "" {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, fmt.Errorf("apiVersion %q is not of the form group/version", apiVersion)
		}
		if a, ok := registry[schema.GroupKind{Group: gv.Group, Kind: kind}]; ok {
			return a, nil
		}
		return nil, fmt.Errorf("kind %s of %s is not supported", kind, apiVersion)
	}
	var found []Adapter
	for _, a := range All() {
		if a.GroupKind().Kind == kind {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("kind %s is not supported", kind)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("kind %s is in more than one API group, name its apiVersion", kind)
}

// Of returns the adapter of an object, nil if its kind is not supported.
func Of(obj *unstructured.Unstructured) Adapter {
	return registry[obj.GroupVersionKind().GroupKind()]
}
