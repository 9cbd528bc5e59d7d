package validate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxListed bounds the list of valid fields in a message about an unknown field that does not resemble any of them.
const maxListed = 8

// stepsIn splits a path such as spec.openPeriods[0].start into its fields and indexes.
func stepsIn(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// valueAt returns the value at a path, nil if there is none.
func valueAt(value any, steps []string) any {
	for _, step := range steps {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(v) {
				return nil
			}
			value = v[n]
		default:
			return nil
		}
	}
	return value
}

// remove deletes the field at a path, if it exists. It does not remove items of lists.
func remove(content map[string]any, steps []string) {
	if len(steps) == 0 {
		return
	}
	if parent, ok := valueAt(content, steps[:len(steps)-1]).(map[string]any); ok {
		delete(parent, steps[len(steps)-1])
	}
}

// fieldsAt returns the names of the fields that the object at a path can have.
func (d *definition) fieldsAt(steps []string) []string {
	at := d.structural
	for _, step := range steps {
		switch property, ok := at.Properties[step]; {
		case ok:
			at = &property
		case at.Items != nil:
			at = at.Items
		default:
			return nil
		}
	}
	return slices.Sorted(maps.Keys(at.Properties))
}
