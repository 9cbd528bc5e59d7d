package target

import "time"

// RenewalDue returns when cert-manager would renew a trimmed Certificate that nobody
// holds, zero if there is no certificate yet.
func RenewalDue(obj *Object, state State) time.Time {
	o := observe(obj)
	lifetime := o.notAfter.Sub(o.notBefore)
	if o.notAfter.IsZero() || lifetime <= 0 {
		return time.Time{}
	}
	return o.notAfter.Add(-renewBefore(obj, state, lifetime))
}
