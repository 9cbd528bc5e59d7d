package target

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Anything longer or with more parts is not a list of at most 32 names. config/lock has the
// same bounds.
const (
	maxGatesLength = 12000
	maxGatesParts  = 200
)

const (
	// MaxNamedGates is how many Gates an object can name itself. Each costs the controller
	// a reconciliation, and anybody who may write an object can name some.
	MaxNamedGates = 32

	// NoGate is the name of a Gate that cannot exist. An object with an annotation that
	// makes no sense names it, and so is held.
	NoGate = "*"
)

// gateName matches the name of a Gate, a DNS subdomain, after that of its namespace.
// config/lock has the same expression.
var gateName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// ParseGates returns the Gates in the annotation with which an object in a namespace names
// its own. They are namespace/name, sorted, each once. The result is NoGate alone if one
// of the names cannot be that of a Gate, or if there are too many.
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
