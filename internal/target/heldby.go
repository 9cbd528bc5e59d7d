package target

import (
	"slices"
	"strings"
)

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
