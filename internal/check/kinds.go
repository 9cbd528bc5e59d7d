package check

import (
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Kinds reports which supported kinds are installed. installed contains their names, as Kind.group.
func Kinds(installed []string) []Finding {
	var has, hasNot []string
	for _, a := range target.All() {
		if slices.Contains(installed, a.GroupKind().String()) {
			has = append(has, a.GroupKind().Kind)
		} else {
			hasNot = append(hasNot, a.GroupKind().Kind)
		}
	}
	switch {
	case len(has) == 0:
		return []Finding{{Warning, "kinds", "none of the supported kinds is installed", "install Flux or cert-manager"}}
	case len(hasNot) == 0:
		return []Finding{{Note, "kinds", "all supported kinds are installed", ""}}
	}
	return []Finding{{Note, "kinds", "Gates hold " + strings.Join(has, ", ") + "; not installed: " + strings.Join(hasNot, ", "), ""}}
}
