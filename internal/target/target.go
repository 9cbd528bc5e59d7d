// Package target has one adapter per kind, which determines how its objects are held. It works on objects in memory and has no client.
//
// To add a kind, add a file with a call to register and the RBAC markers.
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

// State is the state of a target.
type State uint8

const (
	// Free means that the target is reconciled.
	Free State = iota
	// Held means that this controller holds the target. Another client may hold it as well.
	Held
	// Locked means that the lock, an admission policy, holds the target on behalf of Gates. The controller may take over the hold,
	// because fields that a policy has set have no owner.
	Locked
	// Overridden means that the target is held, after another client removed the hold and the lock
	// restored it.
	Overridden
	// SuspendedByOthers means that only other clients hold the target.
	SuspendedByOthers
	// Passing means that the target is released for one reconciliation. Only the record of the pass distinguishes it
	// from Free.
	Passing
)

// IsHeld returns whether the controller holds an object, or the lock holds it on behalf of the controller.
func (s State) IsHeld() bool { return s == Held || s == Locked || s == Overridden }

// Adapter holds objects of one kind.
type Adapter interface {
	// GroupKind returns the kind of objects that the adapter holds.
	GroupKind() schema.GroupKind

	// Observe returns the state of a trimmed object, see Trim.
	Observe(obj *Object, us Identity) State

	// Plan returns how to hold a trimmed object, given its state, the terms and the time.
	Plan(obj *Object, state State, terms Terms, now time.Time) Plan

	// Differs returns whether two versions of a trimmed object differ in inputs of a plan other than the state.
	Differs(before, after *Object) bool

	// levers are the paths of the fields that hold an object.
	levers() [][]string

	// reads are the paths of the other fields that the adapter reads.
	reads() [][]string

	// revisions are the paths of the fields with the revision of an object, which is only reported. The first one that is set counts.
	revisions() [][]string
}

// Terms are the terms of a hold.
type Terms struct {
	// Margin is how long before its expiry a certificate is released.
	Margin time.Duration
	// Strict is true if a certificate must not be released even if it expires.
	Strict bool
	// Activates is true if the Gates govern the activation of a certificate, not its renewal.
	Activates bool
	// Ignored is true if cert-manager has misread our renewal window before.
	Ignored bool
	// Definition has facts about the CRD of the kind.
	Definition Definition
}

// Definition has facts about the definition of a kind.
type Definition struct {
	// Release is the release of the project that defines the kind, such as v1.21.2, from a label of the definition.
	Release string
	// Spec contains the names of the fields in spec.
	Spec map[string]bool
	// Handles is true if the status has a field for the last handled reconcile request.
	Handles bool
	// NoConditions is true if the status cannot keep our conditions.
	NoConditions bool
}

// Plan describes how to hold an object.
type Plan struct {
	// Lever contains the spec fields of an apply configuration that holds the object. It is nil if the object is exempt or is held without a
	// write. An apply configuration without these fields releases the object, unless another client holds it, too.
	Lever map[string]any
	// Stale is true if the object is currently held in a different way.
	Stale bool
	// Exempt is the reason why the object is not held although a Gate is closed.
	Exempt Exemption
	// Bypassed is true if the deferred action happens in spite of the Gate.
	Bypassed bool
	// Ignored is true if cert-manager misreads our renewal window, so that Lever disables the renewal instead.
	Ignored bool
	// Recheck is the time when the plan changes even if the object does not, zero for never.
	Recheck time.Time
}

// Exemption is the reason why an object is not held although a Gate that governs it is
// closed.
type Exemption uint8

const (
	// NotExempt means that the object is held.
	NotExempt Exemption = iota
	// NotReady means that there is nothing to hold yet, for example because no certificate has been issued.
	NotReady
	// Activates means that the Gate holds the activation of the object instead.
	Activates
	// Idle means that no revision waits.
	Idle
	// Imminent means that the certificate would expire if it were held.
	Imminent
	// Needless means that the renewal is not due before the certificate would be released anyway.
	Needless
	// Unsupported means that the installed version of the kind offers no way to hold the object.
	Unsupported
)

// Lasts returns whether an exemption lasts as long as the Gate is closed. If so, the names of the Gates are recorded on the object.
func (e Exemption) Lasts() bool { return e >= Imminent }

// table holds the adapters of the supported kinds.
type table struct {
	adapters map[schema.GroupKind]Adapter
	// sorted lists the adapters, sorted by group and kind.
	sorted []Adapter
	// added holds the kinds that are not built in.
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
	// builtIn lists the adapters that the files of this package register.
	builtIn []Adapter
	// registry holds the built-in adapters and those added by SetKinds.
	registry atomic.Pointer[table]
)

// register adds a built-in adapter. It returns the adapter, so that it can be called in a declaration.
func register(a Adapter) Adapter { //nolint:unparam // a declaration needs a result
	builtIn = append(builtIn, a)
	SetKinds()
	return a
}

// All returns the adapters of all supported kinds, sorted by group and kind.
func All() []Adapter { return slices.Clone(registry.Load().sorted) }

// For returns the adapter of a kind. It ignores the version in apiVersion. If apiVersion is empty, it returns an error unless exactly one
// supported group has the kind.
func For(apiVersion, kind string) (Adapter, error) {
	if apiVersion != "" {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, fmt.Errorf(msgAPIVersion, apiVersion)
		}
		if a, ok := registry.Load().adapters[schema.GroupKind{Group: gv.Group, Kind: kind}]; ok {
			return a, nil
		}
		return nil, fmt.Errorf(msgKindUnsupported, kind, apiVersion, hint(gv.Group, kind))
	}
	var found []Adapter
	for _, a := range registry.Load().sorted {
		if a.GroupKind().Kind == kind {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf(msgKindUnsupportedAnywhere, kind, hint("GROUP", kind))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf(msgKindAmbiguous, kind)
}

// hint returns a sentence about how to add support for a kind, empty if it cannot be added.
func hint(group, kind string) string {
	if group == "" || group == api.Group || !kindForm.MatchString(kind) {
		return ""
	}
	return fmt.Sprintf(msgKindHint, group, kind)
}

// Of returns the adapter of an object, nil if its kind is not supported.
func Of(obj *unstructured.Unstructured) Adapter {
	return registry.Load().adapters[obj.GroupVersionKind().GroupKind()]
}
