package lock

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The cost at which the policy gate-hold compares an object with selectors, in the units of the API server, as measured there and
// rounded up. If one of its expressions spends a million, the API server refuses the write.
const (
	ofEntry       = 150
	ofRequirement = 40
	ofValue       = 6
	ofGate        = 10

	// maxSpent is for the selectors of a kind. The rest is for all else that the policy does, and for what nobody has measured.
	maxSpent = 400_000
)

// Bound leaves out the last selectors of a kind if the policy could not compare an object with all of them: each write of the kind
// would be refused. It returns the Gates, each as namespace/name, of what it leaves out.
func Bound(spec *v1alpha1.GateLockSpec) (gates []string) {
	for _, kind := range slices.Sorted(maps.Keys(spec.Selectors)) {
		spent, locks := 0, spec.Selectors[kind]
		for i := range locks {
			if spent += spends(&locks[i]); spent <= maxSpent {
				continue
			}
			for _, l := range locks[i:] {
				gates = append(gates, l.Gates...)
			}
			if spec.Selectors[kind] = locks[:i]; i == 0 {
				delete(spec.Selectors, kind)
			}
			break
		}
	}
	return sorted(gates)
}

func spends(l *v1alpha1.SelectorLock) int {
	spent := ofEntry + len(l.Gates)*ofGate
	for _, selector := range []*metav1.LabelSelector{l.Selector, l.NamespaceSelector} {
		if selector == nil {
			continue
		}
		spent += (len(selector.MatchLabels) + len(selector.MatchExpressions)) * ofRequirement
		for _, e := range selector.MatchExpressions {
			spent += len(e.Values) * ofValue
		}
	}
	return spent
}
