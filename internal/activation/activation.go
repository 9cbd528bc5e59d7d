// Package activation decides when an issued certificate is activated. Activation copies a certificate from the staged Secret, which
// cert-manager writes, to the live Secret, which is in use. The package has no client and no clock.
package activation

import (
	"bytes"
	"fmt"
	"maps"
	"time"
)

// Outcome is the state of a staged certificate at an instant.
type Outcome uint8

const (
	// Refused means that a user must fix the problem in the message of the decision.
	Refused Outcome = iota
	// NotIssued means that there is no certificate to promote yet.
	NotIssued
	// NotYetValid means that the staged certificate is not valid yet.
	NotYetValid
	// Closed means that the staged certificate waits for the Gates to open.
	Closed
	// Promote means that the staged certificate must be activated now.
	Promote
	// Activated means that the staged certificate is in use.
	Activated
	// RolledBack means that the staged certificate was activated, and that another client has changed the live Secret since. It is not
	// activated again before the next issuance.
	RolledBack
)

// Secret holds the relevant parts of a Secret.
type Secret struct {
	Type        string
	Immutable   bool
	Labels      map[string]string
	Annotations map[string]string
	Data        map[string][]byte
	// Controller is the kind and name of the object that controls the Secret, empty if there is none.
	Controller string
}

// Identity names the annotations by which the controller recognizes its own writes.
type Identity struct {
	// Fingerprint is the annotation of a live Secret with the fingerprint of the data that was last promoted into it.
	Fingerprint string
	// Certificate is the annotation with the name of the Certificate, on a live Secret and on the Secret with its previous data.
	Certificate string
}

// When holds the conditions for promoting a staged certificate.
type When struct {
	// Open means that all Gates that govern the Certificate are open.
	Open bool
	// Strict is true if the live certificate must expire rather than be replaced while a Gate is closed.
	Strict bool
	// Margin is how long before its expiry the live certificate is replaced even if a Gate is closed, at most a sixth of its lifetime.
	Margin time.Duration
}

// Decision is the outcome for a staged certificate, and why.
type Decision struct {
	Outcome Outcome
	// Message is the reason why the promotion is refused.
	Message string
	// Recheck is the time when the outcome may change without a write, zero if no such time is known.
	Recheck time.Time
	// Early is true if the certificate is promoted even though a Gate is closed.
	Early bool
	// Fingerprint is the fingerprint of the staged data.
	Fingerprint string
	// Staged is the certificate that waits or must be promoted, and Live is the one in use. Each is nil if it cannot be read.
	Staged, Live *Leaf
	// Previous is the data of the live Secret that must be saved before another certificate is promoted into it, nil if there is none.
	Previous map[string][]byte
}

// Decide returns the decision on the staged certificate. A Secret that does not exist is nil. The same staged data is promoted only once,
// so that a user can roll back, unless the live Secret was deleted.
func Decide(names Names, us Identity, staged, live *Secret, when When, now time.Time) Decision {
	d := Decision{}
	if live != nil {
		d.Live, _ = leafOf(live.Data[CertKey])
	}
	if d.Message = names.refuse(us, staged, live); d.Message != "" {
		return d
	}
	if staged == nil {
		d.Outcome = NotIssued
		return d
	}
	d.Fingerprint = Fingerprint(staged.Data)
	if live != nil && live.Annotations[us.Fingerprint] == d.Fingerprint && live.Annotations[us.Certificate] == names.Certificate {
		d.Outcome = Activated
		if !Same(live.Data, staged.Data) {
			d.Outcome = RolledBack
		}
		return d
	}
	if d.Message = unwritable(names.Live, live); d.Message != "" {
		return d
	}
	var err error
	if d.Staged, err = usable(staged.Data); err != nil {
		d.Message = fmt.Sprintf("Secret '%s' %s", names.Staged, err)
		return d
	}
	if live != nil && !Same(live.Data, staged.Data) {
		d.Previous = live.Data
	}
	return d.schedule(when, now)
}

// schedule decides when to promote a certificate.
func (d Decision) schedule(when When, now time.Time) Decision {
	last := d.lastMoment(when)
	switch {
	case d.Staged.temporary:
		d.Outcome = NotIssued
	case now.After(d.Staged.NotAfter):
		d.Message = fmt.Sprintf("the certificate to activate expired at %s: find out why cert-manager does not renew it", d.Staged.End())
	case !when.Open && (last.IsZero() || now.Before(last)):
		d.Outcome, d.Recheck = Closed, last
	case now.Before(d.Staged.NotBefore):
		d.Outcome, d.Recheck = NotYetValid, d.Staged.NotBefore
	default:
		d.Outcome, d.Early = Promote, !when.Open
	}
	return d
}

// lastMoment returns when the certificate is promoted even if a Gate is closed. It returns zero for never if Strict is set, if no readable
// certificate is in use, or if the certificate in use does not expire earlier.
func (d Decision) lastMoment(when When) time.Time {
	if when.Strict || d.Live == nil || !d.Staged.NotAfter.After(d.Live.NotAfter) {
		return time.Time{}
	}
	return d.Live.NotAfter.Add(-Margin(when.Margin, d.Live.NotAfter.Sub(d.Live.NotBefore)))
}

// Margin returns the margin for a certificate with the given lifetime: safety, but at most a sixth of the lifetime, and at least zero.
func Margin(safety, lifetime time.Duration) time.Duration {
	return max(0, min(safety, lifetime/6))
}

// Same returns whether two Secrets have the same data.
func Same(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, bytes.Equal)
}
