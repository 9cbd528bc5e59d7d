package validate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxListed bounds the list of valid fields in a message about an unknown field that resembles none of them.
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

// closest returns the most similar of names, or an empty string if none is similar.
func closest(name string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		distance := Distance(strings.ToLower(name), strings.ToLower(n))
		if distance < least && distance*2 < len(n) {
			best, least = n, distance
		}
	}
	return best
}

// Distance returns how many letters differ between two names (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
