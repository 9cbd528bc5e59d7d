package target

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is a manager of a field that is used to hold an object.
type Owner struct {
	Manager string
	// At is the time when the manager last wrote, zero if unknown.
	At time.Time
}

// OtherOwners returns the other managers of the fields that are used to hold an object, sorted and without duplicates.
func OtherOwners(obj *unstructured.Unstructured, us Identity) []Owner {
	var owners []Owner
	adapter := Of(obj)
	if adapter == nil {
		return nil
	}
	for _, item := range managedFields(obj) {
		entry, ok := item.(map[string]any)
		if !ok || entry["manager"] == us.Manager || !slices.ContainsFunc(adapter.levers(), func(path []string) bool { return owns(entry, path) }) {
			continue
		}
		manager, _ := entry["manager"].(string)
		text, _ := entry["time"].(string)
		at, _ := time.Parse(time.RFC3339, text) // an invalid time counts as zero
		i := slices.IndexFunc(owners, func(o Owner) bool { return o.Manager == manager })
		switch {
		case i < 0:
			owners = append(owners, Owner{manager, at})
		case at.After(owners[i].At):
			owners[i].At = at
		}
	}
	slices.SortFunc(owners, func(a, b Owner) int { return strings.Compare(a.Manager, b.Manager) })
	return owners
}
