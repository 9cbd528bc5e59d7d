package target

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// installable is the adapter of suspendable kinds whose status has a field that is set since the first success.
type installable struct {
	suspendable
	// success lists the paths of such fields. config/lock reads the same fields.
	success [][]string
}

// install returns the adapter of a suspendable kind. success are the addresses of fields in obj of which at least one is set since the
// first success of an object.
func install(s suspendable, obj any, success ...any) installable {
	return installable{s, fields.Paths(obj, success...)}
}

func (i installable) reads() [][]string { return append(i.suspendable.reads(), i.success...) }

// HasSucceeded implements Installer.
func (i installable) HasSucceeded(obj *Object) bool {
	return slices.ContainsFunc(i.success, func(path []string) bool { return isSet(obj, path) })
}

func isSet(obj *Object, path []string) bool {
	value, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	return err != nil || ok && value != nil && value != ""
}
