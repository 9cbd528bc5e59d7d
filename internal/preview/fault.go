package preview

import (
	"fmt"
	"strings"

	"github.com/fluxcd/gating-controller/internal/format"
)

// Fault is what is wrong with an object, or doubtful.
type Fault struct {
	// File is where the object is from, empty for one of a cluster.
	File string
	// Object is its namespace and name, Field the path of the field, both empty if it is none in particular.
	Object, Field string
	// Cause says what is wrong.
	Cause string
	// Incomplete is whether the preview of the Gate ends before its range does.
	Incomplete bool

	// today is true if the fault depends on the present time. It does not make a manifest invalid.
	today bool
}

// String is the fault on one line.
func (f Fault) String() string {
	var parts []string
	for _, part := range []string{f.File, f.Object, f.Field, f.Cause} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return format.Printable(strings.Join(parts, ": "))
}

// causesOf returns faults without their objects.
func causesOf(faults []Fault) (causes []string) {
	for _, f := range faults {
		causes = append(causes, Fault{Field: f.Field, Cause: f.Cause}.String())
	}
	return causes
}

// InvalidError has every fault of all manifests.
type InvalidError struct {
	Faults []Fault
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%d faults in the manifests", len(e.Faults))
}
