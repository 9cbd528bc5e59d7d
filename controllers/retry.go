package controllers

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflictRetries is how often an object is read again that somebody else
// wrote between our reading and writing. After that the queue's back-off
// takes over.
const conflictRetries = 5

// cacheDelay is when to look again at what the cache has as it was. Its event tells earlier.
const cacheDelay = time.Second

// recheck is when to look again at something. The zero value is for when something changes.
type recheck struct {
	at time.Time
}

// again has it looked at again not later than at an instant, unless that is zero.
func (r *recheck) again(at time.Time) {
	if r.at.IsZero() || !at.IsZero() && at.Before(r.at) {
		r.at = at
	}
}

// raced returns whether somebody else has written or deleted the object.
func raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// locked returns a patch that fails if the object was changed since.
func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
