// Package verdict decides what to do with one target, based on the target, the persisted status of its Gates, and the time. It has no
// client.
package verdict

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// Effect is the effect of one Gate on one target.
type Effect uint8

const (
	// Undecided means that the Gate decides within milliseconds, because its spec has changed, it has a new close request, or its
	// status is out of date. Until then, the target does not change.
	Undecided Effect = iota
	// Open means that the Gate releases the target.
	Open
	// Closed means that the Gate holds the target.
	Closed
	// Suspended means that the Gate holds no further targets, because of spec.suspend. Held targets
	// stay held.
	Suspended
	// OtherShard means that the Gate belongs to another shard, which adds and removes its name.
	OtherShard
	// Missing means that the target refers to a Gate that does not exist. The target is held.
	Missing
	// Denied means that the target refers to a Gate that it must not refer to. The target is held.
	Denied
)

// holds returns whether a Gate with this effect must hold the target.
func (s Effect) holds() bool { return s == Closed || s == Missing || s == Denied }

// Gate is a Gate that concerns a target: it governs the target, or its name is on the target.
type Gate struct {
	// Name is namespace/name.
	Name   string
	Effect Effect
	// Governs is true if the Gate governs the target and its decision takes effect.
	Governs bool
	// Audits is true if the Gate governs the target with mode Audit, in which it releases held targets. Would is the effect that it would have
	// with mode Enforce.
	Audits bool
	Would  Effect
	// Initial is the end of the initial reconciliation that the closed Gate allows. Until then, Effect, or Would with mode Audit, is
	// Open. It is zero if the Gate does not allow one.
	Initial time.Time
	// Overlaid is true if an overlay gives the target a state other than the state of the Gate.
	Overlaid bool
	// Object is the Gate with the overlays of the target, nil if it does not exist or is unknown.
	Object *v1alpha1.Gate
	// Barred is the reason why a closed Gate permits no pass. It is empty if the Gate permits one, or if none is requested or in progress.
	Barred string
}

// Governing returns the effect of a Gate on a target that it governs, at an instant.
func Governing(name string, g *v1alpha1.Gate, now time.Time) Gate {
	if g.Audits() {
		return auditing(name, g, now)
	}
	return Gate{Name: name, Effect: effectAt(g, now), Governs: g.DeletionTimestamp.IsZero(), Object: g}
}

// Leaving returns the effect of a Gate on a target that has its name, but that it does not govern. The Gate releases the target, unless the
// Gate is undecided, suspended, or closed because its spec is invalid. With an invalid spec, it is unknown what the Gate governs.
func Leaving(name string, g *v1alpha1.Gate, now time.Time) Gate {
	effect := effectAt(g, now)
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	switch {
	case effect == Undecided, effect == Suspended:
	case effect == Closed && opened.Reason == v1alpha1.InvalidSpecReason:
	default:
		effect = Open
	}
	return Gate{Name: name, Effect: effect, Object: g}
}

// auditing returns the effect of a Gate with mode Audit on a target that it governs. The Gate releases the target. While it is undecided,
// suspended or invalid, held targets stay held, and others stay free.
func auditing(name string, g *v1alpha1.Gate, now time.Time) Gate {
	is := Leaving(name, g, now)
	is.Audits, is.Would = g.DeletionTimestamp.IsZero(), effectAt(g, now)
	if is.Effect == Closed {
		is.Effect = Suspended
	}
	if is.Would == Closed && !is.isPersisted() {
		is.Would = Undecided // no reason is known at that instant, but the status will have one soon
	}
	return is
}

// OutOfReach returns the effect of a Gate on a target that has its name and is matched by its spec, although the Gate must no longer
// govern it. The target does not change until the Gate opens.
func OutOfReach(name string, g *v1alpha1.Gate, now time.Time) Gate {
	effect := effectAt(g, now)
	if effect == Closed {
		effect = Suspended
	}
	return Gate{Name: name, Effect: effect, Object: g}
}

// effectAt returns the effect according to the status of a Gate. A close that is due counts even if the status does not show it yet. An
// opening counts only if the status shows it.
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

// LetsActivate returns whether a Gate permits the activation of a certificate: it is open, or it was open when it was suspended.
func (g Gate) LetsActivate() bool {
	return g.Effect == Open || g.Effect == Suspended && g.wasOpen()
}

// Covers returns whether a Gate governs a target in any mode, or the target refers to it.
func (g Gate) Covers() bool {
	return g.Governs || g.Audits || g.IsRefused()
}

// IsRefused returns whether the target refers to a missing or denied Gate.
func (g Gate) IsRefused() bool { return g.Effect == Missing || g.Effect == Denied }

// IsOurs returns whether this process reconciles the Gate.
func (g Gate) IsOurs() bool { return g.Object != nil && g.Effect != OtherShard }

// HasPace returns whether a Gate is open and releases its targets at a pace or in waves.
func (g Gate) HasPace() bool {
	return g.Effect == Open && g.Governs && g.Object.Spec.Release != nil && !g.IsInitial()
}

// isPersisted returns whether the status of a closed Gate shows that it is closed. A close that is due is stored within milliseconds.
func (g Gate) isPersisted() bool {
	return g.Object == nil || meta.IsStatusConditionFalse(g.Object.Status.Conditions, v1alpha1.OpenedCondition)
}

// closedSince returns whether a Gate has been closed since at or earlier. It returns true for a Gate without an object.
func (g Gate) closedSince(at time.Time) bool {
	if g.Object == nil {
		return true
	}
	last := g.Object.Status.LastTransition
	return g.isPersisted() && last != nil && !at.Before(last.At.Time)
}

// respects returns whether a Gate permits users to resume a target.
func (g Gate) respects() bool {
	return g.Object != nil && g.Object.Spec.Mode == v1alpha1.ModeLenient
}

// wasOpen returns whether the status of a Gate shows that it is open.
func (g Gate) wasOpen() bool {
	return g.Object != nil && meta.IsStatusConditionTrue(g.Object.Status.Conditions, v1alpha1.OpenedCondition)
}

// IsInvalid returns whether the spec of a Gate is invalid, so that it is unknown what it governs.
func IsInvalid(g *v1alpha1.Gate) bool {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	return opened != nil && opened.Reason == v1alpha1.InvalidSpecReason
}
