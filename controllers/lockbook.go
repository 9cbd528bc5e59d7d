package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
)

// errLate is why a GateLock is not as a Gate wants it while its write takes long.
var errLate = errors.New("is not written yet")

// errOutdated is why a GateLock is not as a Gate wanted it: by now it wants something else, or
// GateLocks were installed or removed meanwhile.
var errOutdated = errors.New("is not written, for the change is out of date")

// book is what is known of the GateLock of a namespace. This process is its only
// writer, or one of few shards: what it has written last is true until the API
// server says otherwise.
type book struct {
	// writing has an element while somebody reads and writes the GateLock, during the requests. It
	// is no mutex, because synctest does not see who waits for one.
	writing chan struct{}
	// lock as it was read or written last, nil if it has to be read before it is written. One
	// that does not exist has no resource version.
	lock *v1alpha1.GateLock

	// mu is never held during a request: who changes nothing waits for nobody.
	mu sync.Mutex
	// known says that shares are those of the GateLock at a version.
	known   bool
	version string
	shares  map[string]lock.Share
	// asked has, by Gate, the change that was ordered last, until it is made or turns out to
	// change nothing. Only this one is written: whatever was ordered before is out of date. One
	// that failed may have been made all the same, and stays.
	asked map[string]*change
	// abandoned says that there is another book for the namespace, and nothing is written any more.
	abandoned bool
	// waiting are changes that the next write makes all at once: a write is of the
	// whole object, and many Gates may close at the same time.
	waiting []*change
	// under is the write that is under way, nil if there is none.
	under *lockWrite
	// slow says that a write is late, or failed after it was: nobody waits for the next one.
	// Else the Gates of this namespace would keep those of all others waiting.
	slow bool
	// failure is why the last write failed, nil if it did not.
	failure error
}

// change is that of the share of a Gate in a GateLock. Without a share the Gate
// is to have none.
type change struct {
	gate  string
	share *lock.Share
	// cached is the version of the GateLock that the cache had, empty for none.
	cached string
	// queued says that it waits for a write, or did. Until it is made, all that are ordered after
	// it are queued at once, so that none of them finds what the write is about to change.
	queued bool
	// done is closed once it was made, or failed with err.
	done chan struct{}
	err  error
}

// lockWrite is one write of a GateLock.
type lockWrite struct {
	changes []*change
	late    bool
}

func newBook() *book { return &book{writing: make(chan struct{}, 1)} }

func newChange(gate string, share *lock.Share, cached string) *change {
	return &change{gate: gate, share: share, cached: cached, done: make(chan struct{})}
}

// isIn returns whether the share of the Gate is among others as it is to be.
func (c *change) isIn(shares map[string]lock.Share) bool {
	was, has := shares[c.gate]
	return has == (c.share != nil) && (!has || was.Equal(*c.share))
}

// is returns whether another change of the Gate is the same, and under way.
func (c *change) is(other *change) bool {
	select {
	case <-c.done:
		return false
	default:
		return c.cached == other.cached && (c.share == nil) == (other.share == nil) && (c.share == nil || c.share.Equal(*other.share))
	}
}

// order takes note of the newest change of a Gate. It returns the one to wait for: the same
// that is under way already, or nil if there is nothing to do. One that is not queued is to be
// looked at first: it is not known whether it changes anything.
func (b *book) order(c *change) *change {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.abandoned {
		return c
	}
	current, err := isCurrent(b.version, c.cached)
	switch last := b.asked[c.gate]; {
	case last != nil && last.queued:
		// What was read says nothing: the last one may be written after that.
		if last.is(c) {
			return last
		}
		b.queue(c)
	case err != nil || !b.known || !current:
	case c.isIn(b.shares):
		delete(b.asked, c.gate)
		return nil
	default:
		b.queue(c)
	}
	if b.asked == nil {
		b.asked = map[string]*change{}
	}
	b.asked[c.gate] = c
	return c
}

// queue has a change made by the next write. It is called with mu held.
func (b *book) queue(c *change) {
	c.queued = true
	b.waiting = append(b.waiting, c)
}

// looked goes on with a change that was looked at, and queues it unless it is over. It fails
// if another one was ordered meanwhile.
func (b *book) looked(c *change, over bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.asked[c.gate] != c:
		return errOutdated
	case over:
		delete(b.asked, c.gate)
	default:
		b.queue(c)
	}
	return nil
}

// abandon has all changes give up that are not being written.
func (b *book) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.abandoned, b.asked = true, nil
}

// isCurrent returns whether the cache knew of nothing newer than a version that is known,
// empty for none.
func isCurrent(known, cached string) (bool, error) {
	if known == "" || cached == "" {
		return known == cached, nil
	}
	newer, err := resourceversion.CompareResourceVersion(cached, known)
	return newer <= 0, err
}

// begin takes all changes that wait for a write, which begins. It returns nil if there are none.
func (b *book) begin() *lockWrite {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil
	}
	b.under = &lockWrite{changes: b.waiting}
	b.waiting = nil
	return b.under
}

// isLate notes that a write takes long, if it is under way still.
func (b *book) isLate(w *lockWrite) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.under == w {
		w.late, b.slow = true, true
	}
}

// isSlow returns whether nobody is to wait for a write.
func (b *book) isSlow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slow
}

// late is why a Gate goes on without a write.
func (b *book) late() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure != nil {
		return fmt.Errorf("%w, the last time it failed: %w", errLate, b.failure)
	}
	return errLate
}

// end tells all who wait for a write how it went.
func (b *book) end(w *lockWrite, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under, b.slow, b.failure = nil, w.late && err != nil, err
	for _, c := range w.changes {
		switch c.err = err; {
		case err != nil:
		case b.asked[c.gate] == c:
			delete(b.asked, c.gate)
		default:
			c.err = errOutdated // though it may have been written
		}
		close(c.done)
	}
}

// wait returns how a change went. It does not wait for long, and not at all if the GateLock is slow.
func (b *book) wait(ctx context.Context, c *change, patience time.Duration) error {
	if b.isSlow() {
		patience = 0
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return b.late()
	}
}

// enter makes changes in the GateLock that is to be written, and returns those that are any,
// except what is out of date.
func (b *book) enter(batch []*change) map[string]*change {
	changed := b.newest(batch)
	maps.DeleteFunc(changed, func(_ string, c *change) bool { return c.isIn(b.shares) })
	for gate, c := range changed {
		if was, has := b.shares[gate]; has {
			lock.Remove(&b.lock.Spec, gate, was)
		}
		if c.share != nil {
			lock.Put(&b.lock.Spec, gate, *c.share)
		}
	}
	return changed
}

// newest returns the changes, by Gate, that were ordered last.
func (b *book) newest(batch []*change) map[string]*change {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest := map[string]*change{}
	for _, c := range batch {
		if b.asked[c.gate] == c {
			newest[c.gate] = c
		}
	}
	return newest
}

// learn takes note of a GateLock as it was read.
func (b *book) learn(obj *v1alpha1.GateLock, shares map[string]lock.Share) {
	b.lock = obj
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known, b.version, b.shares = true, obj.ResourceVersion, shares
}

// written takes note of changes that were made.
func (b *book) written(changed map[string]*change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version = b.lock.ResourceVersion
	for gate, c := range changed {
		if delete(b.shares, gate); c.share != nil {
			b.shares[gate] = *c.share
		}
	}
}

// forget has a GateLock read before it is written. What is known of other Gates is true
// still, unless somebody else has written it.
func (b *book) forget(raced bool) {
	b.lock = nil
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = b.known && !raced
}
