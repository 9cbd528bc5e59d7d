// Package lock computes the content of GateLocks. It has no client.
package lock

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Part is the part of a GateLock for one Gate.
type Part struct {
	// Locked is true if the targets and all objects that refer to the Gate are locked.
	Locked bool
	// Initial is true if the Gate does not lock targets whose initial reconciliation it allows.
	Initial bool
	// targets holds the targets by their canonical form: the locked ones, and those that an overlay may lock.
	targets map[string]target
	// overlays holds the overlays by kind, without the Gate.
	overlays map[string][]lockv1alpha1.OverlayLock
}

// target matches objects of a kind: one by name, all of them, those with given labels, or those that selectors match.
type target struct {
	kind, name        string
	matchLabels       map[string]string
	selects           bool
	selector          *metav1.LabelSelector
	namespaceSelector *metav1.LabelSelector
}

// NewPart returns the part of a Gate for references to one namespace, or for references that span namespaces. Unless locked is set, the
// part has no targets. Invalid selectors match nothing and are dropped.
func NewPart(locked bool, refs ...v1alpha1.TargetReference) Part {
	p := Part{Locked: locked}
	if locked {
		p.addRefs(refs)
	}
	return p
}

func (p *Part) addRefs(refs []v1alpha1.TargetReference) {
	for i := range refs {
		if t := targetOf(&refs[i]); isValid(t.selector) && isValid(t.namespaceSelector) {
			p.add(t)
		}
	}
}

func targetOf(ref *v1alpha1.TargetReference) target {
	if !ref.SpansNamespaces() && len(ref.MatchExpressions) == 0 {
		return target{kind: ref.Kind, name: ref.Name, matchLabels: ref.MatchLabels}
	}
	return selectorFor(ref)
}

// selectorFor returns the target of a reference in the form of a selector.
func selectorFor(ref *v1alpha1.TargetReference) target {
	t := target{kind: ref.Kind, name: ref.Name, selects: true, namespaceSelector: ref.NamespaceSelector.Kubernetes()}
	if t.name == v1alpha1.AnyName {
		t.name = ""
	}
	if len(ref.MatchLabels)+len(ref.MatchExpressions) > 0 {
		t.selector = ref.Selector()
	}
	return t
}

func (p *Part) add(t target) {
	if p.targets == nil {
		p.targets = map[string]target{}
	}
	p.targets[t.form()] = t
}

// form returns a canonical text, which is equal only for equal targets.
func (t target) form() string {
	form := t.kind + "/" + t.name
	for _, key := range slices.Sorted(maps.Keys(t.matchLabels)) {
		form += "," + key + "=" + t.matchLabels[key] // labels contain no commas
	}
	if t.selects {
		form += selects(t.lock())
	}
	return form
}

// selects returns a text that is equal for locks that select the same objects. It does not depend on the order of labels, because maps are
// sorted.
func selects(l lockv1alpha1.SelectorLock) string {
	l.Gates = nil
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings can always be marshaled
	}
	return string(text)
}

func (t target) lock() lockv1alpha1.SelectorLock {
	return lockv1alpha1.SelectorLock{Name: t.name, Selector: t.selector, NamespaceSelector: t.namespaceSelector}
}

// Equal returns whether two parts are equal.
func (p Part) Equal(other Part) bool {
	return p.Locked == other.Locked && p.Initial == other.Initial && maps.EqualFunc(p.targets, other.targets, func(target, target) bool { return true }) &&
		(len(p.overlays)+len(other.overlays) == 0 || equality.Semantic.DeepEqual(p.overlays, other.overlays))
}

// Read returns the parts of a GateLock by Gate, as namespace/name.
func Read(spec *lockv1alpha1.GateLockSpec) map[string]Part {
	parts := map[string]Part{}
	for gate, locked := range spec.Gates {
		parts[gate] = Part{Locked: locked, Initial: spec.Initial[gate]}
	}
	add := func(gates []string, t target) {
		for _, gate := range gates {
			p := parts[gate]
			p.add(t)
			parts[gate] = p
		}
	}
	for key, gates := range spec.Targets {
		kind, name, _ := strings.Cut(key, "/")
		add(gates, target{kind: kind, name: name})
	}
	for key, locks := range spec.Labels {
		kind, _, _ := strings.Cut(key, "/")
		for _, l := range locks {
			add(l.Gates, target{kind: kind, name: v1alpha1.AnyName, matchLabels: l.MatchLabels})
		}
	}
	for kind, locks := range spec.Selectors {
		for _, l := range locks {
			add(l.Gates, target{kind: kind, name: l.Name, selects: true, selector: l.Selector, namespaceSelector: l.NamespaceSelector})
		}
	}
	for kind, locks := range spec.Overlays {
		for _, l := range locks {
			gate := l.Gate
			l.Gate = ""
			p := parts[gate]
			p.addOverlay(kind, l)
			parts[gate] = p
		}
	}
	return parts
}

// Update replaces the parts of the given Gates, by namespace/name, and removes those that are nil. Other Gates keep their parts. It returns
// whether anything has changed.
func Update(spec *lockv1alpha1.GateLockSpec, parts map[string]*Part) bool {
	before, changed := Read(spec), false
	for _, gate := range slices.Sorted(maps.Keys(parts)) {
		was, has := before[gate]
		part := parts[gate]
		if has == (part != nil) && (!has || was.Equal(*part)) {
			continue
		}
		changed = true
		if has {
			Remove(spec, gate, was)
		}
		if part != nil {
			Put(spec, gate, *part)
		}
	}
	return changed
}

// Object holds the properties of an object that the policies in config/lock evaluate.
type Object struct {
	Kind, Namespace, Name string
	Labels                map[string]string
	// NamespaceLabels are the labels of the object's namespace, for the GateLock of all namespaces and for overlays.
	NamespaceLabels map[string]string
	// Gates lists the Gates that the object refers to.
	Gates []string
	// Initial is true if Gates may allow the initial reconciliation of the object.
	Initial bool
}

// Lockers returns the Gates that lock an object in the GateLock of its namespace, by its kind, name and labels, as the policies in
// config/lock do. It includes the Gates that the object refers to, unless they are known to be open.
func Lockers(spec *lockv1alpha1.GateLockSpec, o Object) []string {
	lockers := slices.Concat(spec.Targets[o.Kind+"/"+o.Name], spec.Targets[o.Kind+"/"+v1alpha1.AnyName])
	for key, value := range o.Labels {
		for _, l := range spec.Labels[o.Kind+"/"+key+"="+value] {
			if isSubset(l.MatchLabels, o.Labels) {
				lockers = append(lockers, l.Gates...)
			}
		}
	}
	return locked(spec, o, slices.Concat(lockers, o.Gates, selecting(spec, o)))
}

// Selecting returns the Gates whose selectors lock an object. In the GateLock of all namespaces, all targets are selectors.
func Selecting(spec *lockv1alpha1.GateLockSpec, o Object) []string {
	return locked(spec, o, selecting(spec, o))
}

func selecting(spec *lockv1alpha1.GateLockSpec, o Object) (lockers []string) {
	for _, l := range spec.Selectors[o.Kind] {
		if o.matches(l.Name, l.Selector, l.NamespaceSelector) {
			lockers = append(lockers, l.Gates...)
		}
	}
	return lockers
}

func (o *Object) matches(name string, selector, namespaceSelector *metav1.LabelSelector) bool {
	return (name == "" || name == o.Name) && matches(selector, o.Labels) && matches(namespaceSelector, o.NamespaceLabels)
}

func isValid(selector *metav1.LabelSelector) bool {
	_, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return true
	}
	valid, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && valid.Matches(labels.Set(set))
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func isSubset(some, all map[string]string) bool {
	for key, value := range some {
		if has, ok := all[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// Put adds the part of a Gate, which must not have one yet.
func Put(spec *lockv1alpha1.GateLockSpec, gate string, part Part) {
	if spec.Gates == nil {
		spec.Gates = map[string]bool{}
	}
	spec.Gates[gate] = part.Locked
	if part.Initial {
		if spec.Initial == nil {
			spec.Initial = map[string]bool{}
		}
		spec.Initial[gate] = true
	}
	for _, form := range slices.Sorted(maps.Keys(part.targets)) {
		switch t := part.targets[form]; {
		case t.selects:
			putSelector(spec, gate, t)
		case len(t.matchLabels) > 0:
			putLabels(spec, gate, t)
		default:
			if spec.Targets == nil {
				spec.Targets = map[string][]string{}
			}
			key := t.kind + "/" + t.name
			spec.Targets[key] = insert(spec.Targets[key], gate)
		}
	}
	putOverlays(spec, gate, part.overlays)
}

func putLabels(spec *lockv1alpha1.GateLockSpec, gate string, t target) {
	if spec.Labels == nil {
		spec.Labels = map[string]lockv1alpha1.LabelLocks{}
	}
	key := labelsKey(t)
	locks := spec.Labels[key]
	i := indexOf(locks, t)
	if i < 0 {
		i = len(locks)
		locks = append(locks, lockv1alpha1.LabelLock{MatchLabels: t.matchLabels})
	}
	locks[i].Gates = insert(locks[i].Gates, gate)
	spec.Labels[key] = locks
}

func putSelector(spec *lockv1alpha1.GateLockSpec, gate string, t target) {
	if spec.Selectors == nil {
		spec.Selectors = map[string][]lockv1alpha1.SelectorLock{}
	}
	locks := spec.Selectors[t.kind]
	i := indexOfSelector(locks, t)
	if i < 0 {
		i = len(locks)
		locks = append(locks, t.lock())
	}
	locks[i].Gates = insert(locks[i].Gates, gate)
	spec.Selectors[t.kind] = locks
}

// Remove removes the part of a Gate.
func Remove(spec *lockv1alpha1.GateLockSpec, gate string, part Part) {
	delete(spec.Gates, gate)
	delete(spec.Initial, gate)
	putOverlays(spec, gate, nil)
	for _, t := range part.targets {
		switch {
		case t.selects:
			locks := spec.Selectors[t.kind]
			if i := indexOfSelector(locks, t); i >= 0 {
				if locks[i].Gates = remove(locks[i].Gates, gate); len(locks[i].Gates) == 0 {
					locks = slices.Delete(locks, i, i+1)
				}
			}
			if spec.Selectors[t.kind] = locks; len(locks) == 0 {
				delete(spec.Selectors, t.kind)
			}
		case len(t.matchLabels) > 0:
			key := labelsKey(t)
			locks := spec.Labels[key]
			if i := indexOf(locks, t); i >= 0 {
				if locks[i].Gates = remove(locks[i].Gates, gate); len(locks[i].Gates) == 0 {
					locks = slices.Delete(locks, i, i+1)
				}
			}
			if spec.Labels[key] = locks; len(locks) == 0 {
				delete(spec.Labels, key)
			}
		default:
			key := t.kind + "/" + t.name
			if spec.Targets[key] = remove(spec.Targets[key], gate); len(spec.Targets[key]) == 0 {
				delete(spec.Targets, key)
			}
		}
	}
}

// labelsKey returns the key under which a GateLock stores a target with labels. One label suffices to find the few targets that can match.
func labelsKey(t target) string {
	first := slices.Min(slices.Collect(maps.Keys(t.matchLabels)))
	return t.kind + "/" + first + "=" + t.matchLabels[first]
}

func indexOf(locks []lockv1alpha1.LabelLock, t target) int {
	return slices.IndexFunc(locks, func(l lockv1alpha1.LabelLock) bool { return maps.Equal(l.MatchLabels, t.matchLabels) })
}

func indexOfSelector(locks []lockv1alpha1.SelectorLock, t target) int {
	return slices.IndexFunc(locks, func(l lockv1alpha1.SelectorLock) bool {
		return l.Name == t.name && same(l.Selector, t.selector) && same(l.NamespaceSelector, t.namespaceSelector)
	})
}

// same returns whether two selectors are equal. It must be fast, because thousands of selectors are compared in pairs.
func same(a, b *metav1.LabelSelector) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.MatchLabels, b.MatchLabels) && slices.EqualFunc(a.MatchExpressions, b.MatchExpressions, func(a, b metav1.LabelSelectorRequirement) bool {
		return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
	})
}

// insert inserts a name into sorted names, unless it is already there.
func insert(names []string, name string) []string {
	i, found := slices.BinarySearch(names, name)
	if found {
		return names
	}
	return slices.Insert(names, i, name)
}

func remove(names []string, name string) []string {
	if i, found := slices.BinarySearch(names, name); found {
		return slices.Delete(names, i, i+1)
	}
	return names
}
