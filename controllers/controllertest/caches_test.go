package controllertest_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/target"
)

// pointers returns the addresses that the pointers in all point to.
func pointers[T any](all []T) (found []uintptr) {
	for _, one := range all {
		found = append(found, reflect.ValueOf(one).Pointer())
	}
	return found
}

// holding calls found with the name and the address of each value that implements an interface, among the fields of a struct and of the
// structs of this package that these point to.
func holding(value reflect.Value, name string, implements reflect.Type, found func(name string, address uintptr)) {
	for value.Kind() == reflect.Interface && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return
	}
	if value.CanAddr() && reflect.PointerTo(value.Type()).Implements(implements) {
		found(name, value.Addr().Pointer())
		return
	}
	if !strings.HasPrefix(value.Type().PkgPath(), reflect.TypeFor[controllers.Gating]().PkgPath()) {
		return
	}
	for i := range value.NumField() {
		holding(value.Field(i), name+"."+value.Type().Field(i).Name, implements, found)
	}
}

func TestCachesOfReconcilersAreRegistered(t *testing.T) {
	t.Parallel()
	l := (&controllers.Gating{GateMetrics: &events.Metrics{}}).NewReconcilers(controllers.NewState(), controllertest.NewQueues(t))
	for _, tc := range []struct {
		reconciler any
		implements reflect.Type
		registered []uintptr
		known      string
	}{
		{l.Gates, reflect.TypeFor[ownwrites.Cache](), pointers(l.Gates.Gates.Caches), "Reconciler.Decider.Dependencies"},
		{l.Targets, reflect.TypeFor[ownwrites.Evictor[target.Key]](), pointers(l.Targets.Caches), "Reconciler.Versions"},
	} {
		var all []string
		used := map[uintptr]bool{}
		holding(reflect.ValueOf(tc.reconciler), reflect.TypeOf(tc.reconciler).Elem().Name(), tc.implements, func(name string, address uintptr) {
			all = append(all, name)
			used[address] = true
			if !slices.Contains(tc.registered, address) {
				t.Errorf("%s is not registered: add it to the caches in state.go", name)
			}
		})
		if !slices.Contains(all, tc.known) {
			t.Errorf("found %q, which lack %s", all, tc.known)
		}
		for _, address := range tc.registered {
			if !used[address] {
				t.Errorf("a cache of %T is registered that it does not use", tc.reconciler)
			}
		}
	}
}
