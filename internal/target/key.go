package target

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key identifies a target.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns the kind, the namespace and the name.
func (k Key) String() string { return k.Kind + " " + k.NamespacedName.String() }

// KeyOf returns the key of an object.
func KeyOf(obj *Object) Key {
	return Key{
		GroupKind:      obj.GroupVersionKind().GroupKind(),
		NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()},
	}
}
