// Package activation decides when an issued certificate is put to use. It is then promoted
// from the Secret that cert-manager writes, the staged one, into the one that is in use,
// the live one. The package works on Secrets in memory and has no client and no clock.
package activation

import (
	"bytes"
	"fmt"
	"maps"
	"time"
)

// Outcome is what becomes of a staged certificate at an instant.
type Outcome uint8

const (
	// Refused means that nothing changes until somebody fixes what the message of the
	// decision says.
	Refused Outcome = iota
	// NotIssued means that there is no certificate to promote yet.
	NotIssued
	// NotYetValid means that the staged certificate is not valid yet.
	NotYetValid
	// Closed means that the staged certificate waits for the Gates to open.
	Closed
	// Promote means that the staged certificate is to be put to use now.
	Promote
	// Activated means that the staged certificate is in use.
	Activated
	// RolledBack means that the staged certificate was put to use, and somebody has
	// changed the live Secret since. It stays so until the next issuance.
	RolledBack
)

// Secret is what matters of a Secret.
type Secret struct {
	Type        string
	Immutable   bool
	Labels      map[string]string
	Annotations map[string]string
	Data        map[string][]byte
	// Controller is the kind and name of the object that controls the Secret, empty
	// if none does.
	Controller string
}

// Identity is how we recognize what we have written.
type Identity struct {
	// Fingerprint is an annotation of a live Secret. It has the fingerprint of what was
	// promoted into it last.
	Fingerprint string
	// Certificate is an annotation of a live Secret, and of the one that keeps what was in
	// it before. It names the Certificate.
	Certificate string
}

// When says when a staged certificate may be promoted.
type When struct {
	// Open means that all Gates that govern the Certificate are open.
	Open bool
	// Strict lets the live certificate expire rather than promote another one while a Gate
	// is closed.
	Strict bool
	// Margin is how long before the end of the live certificate another one is promoted
	// even though a Gate is closed. It is capped at a sixth of the lifetime.
	Margin time.Duration
}

// Decision is what becomes of a staged certificate, and why.
type Decision struct {
	Outcome Outcome
	// Message says why the promotion is refused.
	Message string
	// Recheck is when the outcome changes by itself, zero if no change is in sight.
	Recheck time.Time
	// Early means to promote even though a Gate is closed.
	Early bool
	// Fingerprint of the staged data.
	Fingerprint string
	// Staged is the certificate that waits or is to be promoted, Live the one in use. Each
	// is nil if it cannot be read.
	Staged, Live *Leaf
	// Previous is what to keep of the live Secret before another certificate is promoted
	// into it, nil if there is nothing to keep.
	Previous map[string][]byte
}

// Decide returns what becomes of the staged certificate. A Secret is nil if it does not
// exist. The same staged data is promoted only once, so that a person can go back to what
// was in use before. But a live Secret that is gone is created again.
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

// schedule decides when to promote a certificate that can be promoted.
func (d Decision) schedule(when When, now time.Time) Decision {
	last := d.lastMoment(when)
	switch {
	case d.Staged.temporary:
		d.Outcome = NotIssued
	case now.After(d.Staged.NotAfter):
		d.Message = fmt.Sprintf("the certificate to activate ended at %s: see why cert-manager does not renew it", d.Staged.End())
	case !when.Open && (last.IsZero() || now.Before(last)):
		d.Outcome, d.Recheck = Closed, last
	case now.Before(d.Staged.NotBefore):
		d.Outcome, d.Recheck = NotYetValid, d.Staged.NotBefore
	default:
		d.Outcome, d.Early = Promote, !when.Open
	}
	return d
}

// lastMoment returns when the certificate is promoted even though a Gate is closed. It is
// zero for never: if Strict is set, if nothing is in use yet, or if the certificate in use
// lasts as long.
func (d Decision) lastMoment(when When) time.Time {
	if when.Strict || d.Live == nil || !d.Staged.NotAfter.After(d.Live.NotAfter) {
		return time.Time{}
	}
	return d.Live.NotAfter.Add(-Margin(when.Margin, d.Live.NotAfter.Sub(d.Live.NotBefore)))
}

// Margin returns the margin for a certificate with a lifetime.
func Margin(safety, lifetime time.Duration) time.Duration {
	return max(0, min(safety, lifetime/6))
}

// Same returns whether two Secrets have the same data.
func Same(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, bytes.Equal)
}
