package preview

import (
	"fmt"
	"strings"

	"github.com/fluxcd/gating-controller/internal/format"
)

// Fault is an error in an object, or a warning about one.
type Fault struct {
	// File is the file that contains the object, empty for an object of a cluster.
	File string
	// Object is the namespace and name of the object, and Field is the path of the field. Both may be empty.
	Object, Field string
	// Cause describes the problem.
	Cause string
	// Incomplete is true if the preview of the Gate ends before the range does.
	Incomplete bool

	// today is true if the fault depends on the current time. Such a fault does not make a manifest invalid.
	today bool
}

// String formats the fault on one line.
func (f Fault) String() string {
	var parts []string
	for _, part := range []string{f.File, f.Object, f.Field, f.Cause} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return format.Printable(strings.Join(parts, ": "))
}

// causesOf returns the causes of faults.
func causesOf(faults []Fault) (causes []string) {
	for _, f := range faults {
		causes = append(causes, Fault{Field: f.Field, Cause: f.Cause}.String())
	}
	return causes
}

// InvalidError contains all faults in all manifests.
type InvalidError struct {
	Faults []Fault
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%d faults in the manifests", len(e.Faults))
}
