// Package lock says what Gates write into the GateLocks of namespaces. It has no client.
package lock

import (
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Share is what a Gate has in the GateLock of one namespace.
type Share struct {
	// Locked means that the targets and all objects that name the Gate are locked.
	Locked bool
	// targets by their canonical form.
	targets map[string]target
}

// target are objects of a kind: one by its name, all, or those with some labels.
type target struct {
	kind, name  string
	matchLabels map[string]string
}

// NewShare returns the share of a Gate whose targets in the namespace are refs. A share
// that is not locked has no targets.
func NewShare(locked bool, refs ...v1alpha1.TargetReference) Share {
	s := Share{Locked: locked}
	if locked {
		for _, ref := range refs {
			s.add(target{kind: ref.Kind, name: ref.Name, matchLabels: ref.MatchLabels})
		}
	}
	return s
}

func (s *Share) add(t target) {
	if s.targets == nil {
		s.targets = map[string]target{}
	}
	form := t.kind + "/" + t.name
	for _, key := range slices.Sorted(maps.Keys(t.matchLabels)) {
		form += "," + key + "=" + t.matchLabels[key] // no label has a comma
	}
	s.targets[form] = t
}

// Equal returns whether two shares are the same.
func (s Share) Equal(other Share) bool {
	return s.Locked == other.Locked && maps.EqualFunc(s.targets, other.targets, func(target, target) bool { return true })
}

// Read returns the shares in a GateLock by Gate, as namespace/name.
func Read(spec *v1alpha1.GateLockSpec) map[string]Share {
	shares := map[string]Share{}
	for gate, locked := range spec.Gates {
		shares[gate] = Share{Locked: locked}
	}
	add := func(gates []string, t target) {
		for _, gate := range gates {
			s := shares[gate]
			s.add(t)
			shares[gate] = s
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
	return shares
}

// Update sets the shares of Gates, by namespace/name. A nil share is removed. Those of
// other Gates stay. It returns whether anything changed.
func Update(spec *v1alpha1.GateLockSpec, shares map[string]*Share) bool {
	before, changed := Read(spec), false
	for _, gate := range slices.Sorted(maps.Keys(shares)) {
		was, has := before[gate]
		share := shares[gate]
		if has == (share != nil) && (!has || was.Equal(*share)) {
			continue
		}
		changed = true
		if has {
			Remove(spec, gate, was)
		}
		if share != nil {
			Put(spec, gate, *share)
		}
	}
	return changed
}

// Lockers returns the Gates that lock an object, as the policies of config/lock find them:
// by its kind, its name and its labels. Those that the object names itself are among them
// unless they are known to be open.
func Lockers(spec *v1alpha1.GateLockSpec, kind, name string, labels map[string]string, named []string) []string {
	lockers := slices.Concat(spec.Targets[kind+"/"+name], spec.Targets[kind+"/"+v1alpha1.AnyName])
	for key, value := range labels {
		for _, l := range spec.Labels[kind+"/"+key+"="+value] {
			if isSubset(l.MatchLabels, labels) {
				lockers = append(lockers, l.Gates...)
			}
		}
	}
	for _, gate := range named {
		if locked, known := spec.Gates[gate]; locked || !known {
			lockers = append(lockers, gate)
		}
	}
	slices.Sort(lockers)
	return slices.Compact(lockers)
}

func isSubset(some, all map[string]string) bool {
	for key, value := range some {
		if has, ok := all[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// Put adds the share of a Gate that has none yet.
func Put(spec *v1alpha1.GateLockSpec, gate string, share Share) {
	if spec.Gates == nil {
		spec.Gates = map[string]bool{}
	}
	if spec.Targets == nil {
		spec.Targets = map[string][]string{}
	}
	if spec.Labels == nil {
		spec.Labels = map[string][]v1alpha1.LabelLock{}
	}
	spec.Gates[gate] = share.Locked
	for _, t := range share.targets {
		if len(t.matchLabels) == 0 {
			key := t.kind + "/" + t.name
			spec.Targets[key] = insert(spec.Targets[key], gate)
			continue
		}
		key := labelsKey(t)
		locks := spec.Labels[key]
		i := indexOf(locks, t)
		if i < 0 {
			i = len(locks)
			locks = append(locks, v1alpha1.LabelLock{MatchLabels: t.matchLabels})
		}
		locks[i].Gates = insert(locks[i].Gates, gate)
		spec.Labels[key] = locks
	}
}

// Remove removes the share of a Gate.
func Remove(spec *v1alpha1.GateLockSpec, gate string, share Share) {
	delete(spec.Gates, gate)
	for _, t := range share.targets {
		if len(t.matchLabels) == 0 {
			key := t.kind + "/" + t.name
			if spec.Targets[key] = remove(spec.Targets[key], gate); len(spec.Targets[key]) == 0 {
				delete(spec.Targets, key)
			}
			continue
		}
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
	}
}

// labelsKey is the key of labels in a GateLock. One of the labels is enough to find the
// few that can match.
func labelsKey(t target) string {
	first := slices.Min(slices.Collect(maps.Keys(t.matchLabels)))
	return t.kind + "/" + first + "=" + t.matchLabels[first]
}

func indexOf(locks []v1alpha1.LabelLock, t target) int {
	return slices.IndexFunc(locks, func(l v1alpha1.LabelLock) bool { return maps.Equal(l.MatchLabels, t.matchLabels) })
}

// insert keeps names sorted and unique.
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
