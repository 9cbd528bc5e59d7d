// Package verdict says what happens to one target. It decides from the target, the
// persisted status of all Gates that have to do with it, and the clock. It has no client.
package verdict

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// Effect is what one Gate says about one target.
type Effect uint8

const (
	// Undecided Gates decide within milliseconds: somebody has changed the spec or has
	// asked an open Gate to close, or the status of an open Gate is out of date. Until
	// then the target stays as it is.
	Undecided Effect = iota
	// Open lets the target go.
	Open
	// Closed holds the target.
	Closed
	// Suspended Gates hold no further targets, because of spec.suspend. Held targets stay held.
	Suspended
	// OtherShard means that another shard has the Gate. That shard adds and removes its
	// name.
	OtherShard
	// Missing means that the target names a Gate that does not exist. It is held.
	Missing
	// Denied means that the target names a Gate that it must not refer to. It is held.
	Denied
)

// holds returns whether a Gate wants the target held.
func (s Effect) holds() bool { return s == Closed || s == Missing || s == Denied }

// Gate is a Gate that has to do with a target: it governs the target, or its name is on
// it.
type Gate struct {
	// Name as namespace/name.
	Name   string
	Effect Effect
	// Governs says that the Gate governs the target and has a say.
	Governs bool
	// Audits says that the Gate governs the target with mode Audit. It has no say: it lets
	// go what it holds. Would is what it would say if its mode were Enforce.
	Audits bool
	Would  Effect
	// Object is the Gate, nil if it does not exist or is unknown.
	Object *v1alpha1.Gate
	// Barred says why a closed Gate lets nothing pass. It is empty unless somebody asks for a pass.
	Barred string
}

// Governing returns what a Gate says about a target that it governs, at an instant.
func Governing(name string, g *v1alpha1.Gate, now time.Time) Gate {
	if g.Audits() {
		return auditing(name, g, now)
	}
	return Gate{Name: name, Effect: effectAt(g, now), Governs: g.DeletionTimestamp.IsZero(), Object: g}
}

// Leaving returns what a Gate says about a target that has its name, but that it does not
// govern. The target is let go, unless nobody knows which targets the Gate is meant to
// govern.
func Leaving(name string, g *v1alpha1.Gate, now time.Time) Gate {
	stand := effectAt(g, now)
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	switch {
	case stand == Undecided, stand == Suspended:
	case stand == Closed && opened.Reason == v1alpha1.InvalidSpecReason:
	default:
		stand = Open
	}
	return Gate{Name: name, Effect: stand, Object: g}
}

// auditing returns what a Gate with mode Audit says about a target that it governs. The
// target is let go, unless nobody has decided on the spec yet or the spec is invalid: then
// it stays as it is, also for a Gate that has nothing there.
func auditing(name string, g *v1alpha1.Gate, now time.Time) Gate {
	is := Leaving(name, g, now)
	is.Audits, is.Would = g.DeletionTimestamp.IsZero(), effectAt(g, now)
	if is.Effect == Closed {
		is.Effect = Suspended
	}
	if is.Would == Closed && !is.isPersisted() {
		is.Would = Undecided // nothing has to happen at that instant, and the status is about to say why
	}
	return is
}

// OutOfReach returns what a Gate says about a target that has its name, if the Gate names
// it but no longer may. The target stays as it is until the Gate opens.
func OutOfReach(name string, g *v1alpha1.Gate, now time.Time) Gate {
	stand := effectAt(g, now)
	if stand == Closed {
		stand = Suspended
	}
	return Gate{Name: name, Effect: stand, Object: g}
}

// effectAt reads the status of a Gate. A Gate whose close is due counts as closed, even before
// its status shows it. A Gate whose opening is due is not open until its status shows it.
func effectAt(g *v1alpha1.Gate, now time.Time) Effect {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	next := g.Status.NextTransition
	due := next != nil && !next.At.After(now)
	switch {
	case !g.DeletionTimestamp.IsZero():
		return Open
	case g.Spec.Suspend:
		return Suspended
	case opened == nil, g.Status.ObservedGeneration != g.Generation:
		return Undecided
	case opened.Status != metav1.ConditionTrue, due && next.State == v1alpha1.StateClosed:
		return Closed
	case due, ledger.CloseRequested(g):
		return Undecided
	}
	return Open
}

// LetsActivate returns whether a Gate lets a certificate be put to use: it is open, or was open when it was suspended.
func (g Gate) LetsActivate() bool {
	return g.Effect == Open || g.Effect == Suspended && g.wasOpen()
}

// Covers returns whether a Gate governs a target in any mode, or the target names it.
func (g Gate) Covers() bool {
	return g.Governs || g.Audits || g.IsRefused()
}

// IsRefused returns whether a target names a Gate that is missing or denied.
func (g Gate) IsRefused() bool { return g.Effect == Missing || g.Effect == Denied }

// IsOurs returns whether this process reconciles a Gate.
func (g Gate) IsOurs() bool { return g.Object != nil && g.Effect != OtherShard }

// HasPace returns whether a Gate is open and releases its targets at a pace or in waves.
func (g Gate) HasPace() bool {
	return g.Effect == Open && g.Governs && g.Object.Spec.Release != nil
}

// isPersisted returns whether the status of a closed Gate says that it is closed. If the
// Gate is due to close, it will within milliseconds.
func (g Gate) isPersisted() bool {
	return g.Object == nil || meta.IsStatusConditionFalse(g.Object.Status.Conditions, v1alpha1.OpenedCondition)
}

// closedSince returns whether a Gate has been closed since an instant or longer.
func (g Gate) closedSince(at time.Time) bool {
	if g.Object == nil {
		return true
	}
	last := g.Object.Status.LastTransition
	return g.isPersisted() && last != nil && !at.Before(last.At.Time)
}

// respects returns whether a Gate accepts that a user resumes a target.
func (g Gate) respects() bool {
	return g.Object != nil && g.Object.Spec.Mode == v1alpha1.ModeLenient
}

// wasOpen returns whether the status of a Gate says that it is open.
func (g Gate) wasOpen() bool {
	return g.Object != nil && meta.IsStatusConditionTrue(g.Object.Status.Conditions, v1alpha1.OpenedCondition)
}

// IsInvalid returns whether the spec of a Gate does not compile, so that nobody knows what
// the Gate is meant to govern.
func IsInvalid(g *v1alpha1.Gate) bool {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	return opened != nil && opened.Reason == v1alpha1.InvalidSpecReason
}
