package target

import (
	"fmt"
	"slices"
	"strings"
)

// suspendedByAnnotation has the name of the user or program that suspended a Flux object. The web UI of Flux Operator shows it. It
// has no effect on holds.
const suspendedByAnnotation = "fluxcd.controlplane.io/suspendedBy"

var suspendedByPath = []string{"metadata", "annotations", suspendedByAnnotation}

// maxSuspendedBy bounds the number of Gates in suspendedByAnnotation.
const maxSuspendedBy = 3

// SuspendedBy returns the annotation that names Gates in the user interfaces of Flux while they hold a trimmed object. It returns nil for
// objects of other projects, and if another manager owns the annotation.
func SuspendedBy(obj *Object, us Identity, gates []string) map[string]string {
	_, exists := obj.GetAnnotations()[suspendedByAnnotation]
	ours, others := us.owners(&obj.Unstructured, suspendedByPath)
	if others || exists && !ours || len(gates) == 0 || !isFlux(obj.GroupVersionKind().GroupKind()) {
		return nil
	}
	value := "gate " + gates[0]
	if n := len(gates); n > 1 {
		value = "gates " + strings.Join(gates[:min(n, maxSuspendedBy)], ", ")
		if n > maxSuspendedBy {
			value += fmt.Sprintf(" and %d more", n-maxSuspendedBy)
		}
	}
	return map[string]string{suspendedByAnnotation: value}
}

// ParseHeldBy returns the Gates in a heldBy annotation.
func ParseHeldBy(value string) []string {
	var gates []string
	for gate := range strings.SplitSeq(value, ",") {
		if gate = strings.TrimSpace(gate); gate != "" {
			gates = append(gates, gate)
		}
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}

// FormatHeldBy is the inverse of ParseHeldBy.
func FormatHeldBy(gates []string) string {
	gates = slices.Clone(gates)
	slices.Sort(gates)
	return strings.Join(slices.Compact(gates), ",")
}
