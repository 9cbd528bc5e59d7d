package target

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxGatesLength and maxGatesParts bound the characters and the parts of the annotation. A value that exceeds them is invalid. config/lock
// has the same bounds.
const (
	maxGatesLength = 12000
	maxGatesParts  = 200
)

const (
	// MaxNamedGates bounds the Gates that an object can refer to, because each of them causes a reconciliation, and any user with write access
	// to an object can add some.
	MaxNamedGates = 32

	// NoGate is the name of a Gate that cannot exist. An object whose annotation is invalid refers to it, and is therefore held.
	NoGate = "*"
)

// gateName matches namespace/name, where the name is a DNS subdomain. config/lock has the same expression.
var gateName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// ParseGates returns the Gates in the annotation of an object in a namespace, as namespace/name, sorted and without duplicates. If a name
// is invalid or there are too many, it returns only NoGate.
func ParseGates(value, namespace string) []string {
	noGate := []string{namespace + "/" + NoGate}
	if utf8.RuneCountInString(value) > maxGatesLength {
		return noGate
	}
	var gates []string
	for _, gate := range strings.SplitN(value, ",", maxGatesParts) {
		if gate = strings.TrimSpace(gate); gate == "" {
			continue
		}
		if !strings.Contains(gate, "/") {
			gate = namespace + "/" + gate
		}
		gates = append(gates, gate)
	}
	invalid := func(gate string) bool { return !gateName.MatchString(gate) }
	if len(gates) > MaxNamedGates || slices.ContainsFunc(gates, invalid) {
		return noGate
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}
