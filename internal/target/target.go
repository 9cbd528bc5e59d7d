// Package target knows how each kind of object is held. It works on objects in
// memory and has no client.
//
// A new kind is one new file: a call of register and its RBAC markers.
package target

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api"
)

// State of a target.
type State uint8

const (
	// Free to be reconciled.
	Free State = iota
	// Held by us. Somebody else may hold it as well.
	Held
	// Locked means held by the lock, an admission policy, in the name of Gates. We may
	// take it over: nobody owns what a policy has written.
	Locked
	// Overridden is Held after somebody took the hold away and the lock put it back.
	Overridden
	// SuspendedByOthers means held by somebody else alone.
	SuspendedByOthers
	// Passing means that we have let it go for one reconciliation. Only who knows what
	// we have noted on it can tell that from Free.
	Passing
)

// IsHeld returns whether an object is held by us, or by the lock for us.
func (s State) IsHeld() bool { return s == Held || s == Locked || s == Overridden }

// Adapter is the way to hold objects of one kind.
type Adapter interface {
	// GroupKind that the adapter is for.
	GroupKind() schema.GroupKind

	// Observe returns the state of a trimmed object, see Trim.
	Observe(obj *Object, us Identity) State

	// Plan returns how to hold a trimmed object in a state, on some terms, at an
	// instant.
	Plan(obj *Object, state State, terms Terms, now time.Time) Plan

	// Differs returns whether two versions of a trimmed object differ in something, apart
	// from their state, that a plan depends on.
	Differs(before, after *Object) bool

	// levers are the paths of the fields that hold an object.
	levers() [][]string

	// reads are the paths of the other fields that the adapter needs.
	reads() [][]string

	// revisions are the paths of the fields that say the revision of an object. The first
	// that is set counts. They decide nothing.
	revisions() [][]string
}

// Terms on which an object is held.
type Terms struct {
	// Margin is how long before its expiry a certificate is let go.
	Margin time.Duration
	// Strict means that a certificate is not let go even if it expires.
	Strict bool
	// Activates means that the Gates govern when a certificate is put to use, not its
	// renewal.
	Activates bool
	// Ignored means that cert-manager has misread our window before.
	Ignored bool
	// Definition of the kind in the cluster.
	Definition Definition
}

// Definition is what is known of the definition of a kind.
type Definition struct {
	// Release of the project that has the kind, such as v1.21.2, if the definition has a
	// label with it.
	Release string
	// Spec has the names of the fields of the objects' spec.
	Spec map[string]bool
	// Handles says that the objects' status has the last request for a reconciliation
	// that was handled.
	Handles bool
	// Untold means that the objects have no place for a condition of ours in their status.
	Untold bool
}

// Plan is how to hold an object.
type Plan struct {
	// Lever is the spec of a configuration for server-side apply that holds the object.
	// Applying a configuration without it releases the object, unless somebody else holds
	// it too. Nil if the object is exempt.
	Lever map[string]any
	// Stale means that the object is held in another way than this.
	Stale bool
	// Exempt is why the object is not held although a Gate is closed.
	Exempt Exemption
	// Bypassed means that what the hold defers happens anyway.
	Bypassed bool
	// Ignored means that cert-manager misreads our window, so that the lever is another
	// one.
	Ignored bool
	// Recheck is when the plan changes by itself, zero if never.
	Recheck time.Time
}

// Exemption is why an object is not held although a Gate that governs it is
// closed.
type Exemption uint8

const (
	// NotExempt objects are held.
	NotExempt Exemption = iota
	// NotReady means that there is nothing to hold yet.
	NotReady
	// Activates means that the Gate holds something else of the object.
	Activates
	// Idle means that no revision waits.
	Idle
	// Imminent means that a certificate would expire.
	Imminent
	// Needless means that a certificate is due for renewal only when it is let go anyway.
	Needless
	// Unsupported means that the version in the cluster gives no way to hold the object.
	Unsupported
)

// Lasts returns whether an exemption is noted on the object, because it lasts as long as
// the Gate is closed.
func (e Exemption) Lasts() bool { return e >= Imminent }

// table has the adapters of the supported kinds.
type table struct {
	adapters map[schema.GroupKind]Adapter
	// sorted are the adapters by group and kind.
	sorted []Adapter
	// added are the kinds that are not built in.
	added map[schema.GroupKind]Kind
}

func (t *table) add(a Adapter) {
	t.adapters[a.GroupKind()] = a
	t.sorted = append(t.sorted, a)
	slices.SortFunc(t.sorted, func(a, b Adapter) int {
		return strings.Compare(a.GroupKind().String(), b.GroupKind().String())
	})
}

var (
	// builtIn are the adapters that the files of this package register.
	builtIn []Adapter
	// registry has those and the ones of SetKinds.
	registry atomic.Pointer[table]
)

// register returns the adapter so that it can be called in a declaration.
func register(a Adapter) Adapter { //nolint:unparam // a result is what makes it a declaration
	builtIn = append(builtIn, a)
	SetKinds()
	return a
}

// All returns the adapters of all supported kinds, sorted by group and kind.
func All() []Adapter { return slices.Clone(registry.Load().sorted) }

// For returns the adapter of a kind. The version of apiVersion does not matter.
// An empty apiVersion means the only supported group that has the kind.
func For(apiVersion, kind string) (Adapter, error) {
	if apiVersion != "" {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, fmt.Errorf("apiVersion %q is not of the form group/version", apiVersion)
		}
		if a, ok := registry.Load().adapters[schema.GroupKind{Group: gv.Group, Kind: kind}]; ok {
			return a, nil
		}
		return nil, fmt.Errorf("kind %s of %s is not supported%s", kind, apiVersion, hint(gv.Group, kind))
	}
	var found []Adapter
	for _, a := range registry.Load().sorted {
		if a.GroupKind().Kind == kind {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("kind %s is not supported%s", kind, hint("GROUP", kind))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("kind %s is in more than one API group, name its apiVersion", kind)
}

// hint says how a kind would be supported, if it can be at all.
func hint(group, kind string) string {
	if group == "" || group == api.Group || !kindForm.MatchString(kind) {
		return ""
	}
	return fmt.Sprintf(": if a boolean field stops its objects, start the controller with --suspend-kinds=%s/%s", group, kind)
}

// Of returns the adapter of an object, nil if its kind is not supported.
func Of(obj *unstructured.Unstructured) Adapter {
	return registry.Load().adapters[obj.GroupVersionKind().GroupKind()]
}
