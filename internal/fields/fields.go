// Package fields derives the paths of fields from API types, so that a renamed field breaks the build.
package fields

import (
	"fmt"
	"reflect"
	"strings"
)

// New returns a T in which no pointer to a struct is nil, so that the address of each field can be taken. T must not be recursive.
func New[T any]() *T {
	t := new(T)
	fill(reflect.ValueOf(t).Elem())
	return t
}

func fill(v reflect.Value) {
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && v.CanSet() {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// Path returns the JSON path of a field of a struct, such as spec and suspend, given pointers to the struct and the field. It panics if
// the field is not in the struct.
func Path(of, field any) []string {
	path, ok := find(reflect.ValueOf(of).Elem(), reflect.ValueOf(field))
	if !ok {
		panic(fmt.Sprintf("a %T is not the address of a field of this %T", field, of))
	}
	return path
}

// Paths returns the JSON paths of fields of a struct, see Path.
func Paths(of any, fields ...any) (paths [][]string) {
	for _, field := range fields {
		paths = append(paths, Path(of, field))
	}
	return paths
}

// Name returns the JSON name of a field, which is the last part of its path.
func Name(of, field any) string {
	path := Path(of, field)
	return path[len(path)-1]
}

// find compares both addresses and types, because a struct and its first field have the same address.
func find(v, field reflect.Value) (path []string, ok bool) {
	for i := range v.NumField() {
		value, path := v.Field(i), []string(nil)
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name != "" { // otherwise the fields are inlined
			path = []string{name}
		}
		if value.Addr().Pointer() == field.Pointer() && value.Type() == field.Type().Elem() {
			return path, true
		}
		if value.Kind() == reflect.Pointer {
			value = value.Elem() // of none if it is nil
		}
		if value.Kind() == reflect.Struct {
			if rest, ok := find(value, field); ok {
				return append(path, rest...), true
			}
		}
	}
	return nil, false
}
