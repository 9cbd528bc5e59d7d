package lock

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
)

// Costs of matching an object against selectors in the policy gate-hold, in cost units of CEL, measured and rounded up. The API server
// refuses a write if one expression costs more than a million.
const (
	ofEntry       = 150
	ofRequirement = 40
	ofValue       = 6
	ofGate        = 10

	// maxSpent bounds the cost of the selectors of a kind, and maxSpentByLabel bounds the cost of the entries of a label. The rest of the
	// budget is left for everything else that the policy does.
	maxSpent        = 400_000
	maxSpentByLabel = 100_000
)

// Bound drops the last selectors of a kind, and the last entries of a label, if matching an object against all of them would be too
// expensive for the policy. The API server would then refuse every write of the kind, or with the label. It also drops the last labels if a
// GateLock cannot have that many, and overlays beyond lockv1alpha1.MaxOverlayLocks. It returns the Gates of the dropped entries as
// namespace/name.
func Bound(spec *lockv1alpha1.GateLockSpec) (gates []string) {
	selectors := bound(spec.Selectors, func(locks []lockv1alpha1.SelectorLock) int { return fitting(locks, maxSpent, spends) }, func(l *lockv1alpha1.SelectorLock) []string { return l.Gates })
	gates = append(boundOverlays(spec), selectors...)
	labels := 0
	return sorted(append(gates, bound(spec.Labels, func(locks lockv1alpha1.LabelLocks) int {
		if labels++; labels > lockv1alpha1.MaxLockedLabels {
			return 0
		}
		return min(fitting(locks, maxSpentByLabel, spendsByLabel), lockv1alpha1.MaxLabelLocks)
	}, func(l *lockv1alpha1.LabelLock) []string { return l.Gates })...))
}

// bound keeps the first n locks of each key, where n is the result of room, and returns the Gates of the others. It calls room in the order
// of the keys.
func bound[S ~[]L, L any](all map[string]S, room func(S) int, gatesOf func(*L) []string) (left []string) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		locks := all[key]
		n := room(locks)
		for i := range locks[n:] {
			left = append(left, gatesOf(&locks[n+i])...)
		}
		if all[key] = locks[:n]; n == 0 {
			delete(all, key)
		}
	}
	return left
}

// fitting returns the largest number of leading locks whose total cost does not exceed most.
func fitting[L any](locks []L, most int, spends func(*L) int) int {
	spent := 0
	for i := range locks {
		if spent += spends(&locks[i]); spent > most {
			return i
		}
	}
	return len(locks)
}

func spendsByLabel(l *lockv1alpha1.LabelLock) int {
	return ofEntry + len(l.MatchLabels)*ofRequirement + len(l.Gates)*ofGate
}

func spends(l *lockv1alpha1.SelectorLock) int {
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
