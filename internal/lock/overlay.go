package lock

import (
	"cmp"
	"maps"
	"slices"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// AddOverlay adds an overlay of a request or an exception to a part. It locks or unlocks targets of the Gate. refs are the references
// of the overlay, and namespaces contains the namespace of each, empty for any. targets are the references of the Gate. A locking
// overlay needs them in the part even if the Gate is open. Invalid selectors match nothing and are dropped.
func (p *Part) AddOverlay(locks, requested bool, refs []v1alpha1.TargetReference, namespaces []string, targets []v1alpha1.TargetReference) {
	for i := range refs {
		if t := selectorFor(&refs[i]); isValid(t.selector) && isValid(t.namespaceSelector) {
			p.addOverlay(t.kind, lockv1alpha1.OverlayLock{
				Locked: locks, Requested: requested, Namespace: namespaces[i], Name: t.name, Selector: t.selector, NamespaceSelector: t.namespaceSelector,
			})
		}
	}
	if locks {
		p.addRefs(targets)
	}
}

func (p *Part) addOverlay(kind string, l lockv1alpha1.OverlayLock) {
	if p.overlays == nil {
		p.overlays = map[string][]lockv1alpha1.OverlayLock{}
	}
	p.overlays[kind] = append(p.overlays[kind], l)
}

// putOverlays replaces the overlays of a Gate.
func putOverlays(spec *lockv1alpha1.GateLockSpec, gate string, overlays map[string][]lockv1alpha1.OverlayLock) {
	for kind, locks := range spec.Overlays {
		if locks = slices.DeleteFunc(locks, func(l lockv1alpha1.OverlayLock) bool { return l.Gate == gate }); len(locks) == 0 {
			delete(spec.Overlays, kind)
		} else {
			spec.Overlays[kind] = locks
		}
	}
	for kind, locks := range overlays {
		if spec.Overlays == nil {
			spec.Overlays = map[string][]lockv1alpha1.OverlayLock{}
		}
		all := spec.Overlays[kind]
		for _, l := range locks {
			l.Gate = gate
			all = append(all, l)
		}
		slices.SortStableFunc(all, func(a, b lockv1alpha1.OverlayLock) int { return cmp.Compare(a.Gate, b.Gate) })
		spec.Overlays[kind] = all
	}
}

// boundOverlays drops overlays if there are too many, first those that unlock objects, so that the objects stay locked. It returns the
// Gates of the dropped overlays.
func boundOverlays(spec *lockv1alpha1.GateLockSpec) (left []string) {
	excess := -lockv1alpha1.MaxOverlayLocks
	for _, locks := range spec.Overlays {
		excess += len(locks)
	}
	for _, locked := range []bool{false, true} {
		for _, kind := range slices.Sorted(maps.Keys(spec.Overlays)) {
			locks := spec.Overlays[kind]
			for i := len(locks) - 1; i >= 0 && excess > 0; i-- {
				if locks[i].Locked == locked {
					left = append(left, locks[i].Gate)
					locks = slices.Delete(locks, i, i+1)
					excess--
				}
			}
			if spec.Overlays[kind] = locks; len(locks) == 0 {
				delete(spec.Overlays, kind)
			}
		}
	}
	return left
}

// locked returns the Gates among gates that lock an object: Gates with an overlay that locks it, and locked or unknown Gates without an
// overlay that unlocks it, except Gates that allow its initial reconciliation. Overlays of requests take precedence over overlays of
// exceptions.
func locked(spec *lockv1alpha1.GateLockSpec, o Object, gates []string) []string {
	overlaid, requested := map[string]bool{}, map[string]bool{}
	for _, l := range spec.Overlays[o.Kind] {
		if l.Namespace != "" && l.Namespace != o.Namespace || !o.matches(l.Name, l.Selector, l.NamespaceSelector) || requested[l.Gate] && !l.Requested {
			continue
		}
		overlaid[l.Gate] = l.Locked || overlaid[l.Gate] && requested[l.Gate] == l.Requested
		requested[l.Gate] = l.Requested
	}
	return sorted(slices.DeleteFunc(gates, func(gate string) bool {
		locked, known := overlaid[gate]
		if !known {
			locked, known = spec.Gates[gate]
		}
		return known && !locked || o.Initial && spec.Initial[gate]
	}))
}
