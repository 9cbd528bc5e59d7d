// Package limit bounds how much work is in progress and how much time it takes, and divides both among viewers.
package limit

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// ErrBusy is returned for work that cannot begin before its deadline, because earlier work has used up the time.
var ErrBusy = errors.New("too much is requested at once")

const (
	// maxShares is the number of shares above which idle shares are evicted.
	maxShares = 1000
	// longest caps the charged time of one piece of work at a multiple of the burst, because a suspended process does no work.
	longest = 10
)

// Limiter bounds concurrent work and the time it takes, in total and per viewer. The work of anonymous viewers, whose name is empty,
// counts only toward the total.
type Limiter struct {
	total share
	// each is the number of slots that one viewer may use.
	each int64

	mu     sync.Mutex
	shares map[string]*share
}

// share bounds the work of one viewer, or of all viewers.
type share struct {
	slots *semaphore.Weighted
	// time contains one token per microsecond of work, nil if time is not bounded.
	time *rate.Limiter
	// users is the number of calls that are using the share. It is guarded by the mutex of the limiter.
	users int
}

// New returns a Limiter with the given number of slots for all viewers, of which one viewer may use at most each. In the long run, work
// uses at most part CPUs. Work may use burst before it has to wait. One viewer may use at most half of part and of burst. If part is
// zero, the time is not bounded.
func New(slots, each int, part float64, burst time.Duration) *Limiter {
	l := &Limiter{total: share{slots: semaphore.NewWeighted(int64(slots))}, each: int64(each), shares: map[string]*share{}}
	if part > 0 {
		l.total.time = rate.NewLimiter(rate.Limit(part*float64(time.Second/time.Microsecond)), int(burst.Microseconds()))
	}
	return l
}

// Begin waits for a slot, and then until earlier work has used no more than its part of the time. It checks the viewer's share before
// the total, so that a viewer without remaining share does not occupy a slot of the total. It takes the slot before it checks the
// time, so that the number of slots bounds the work that exceeds the part. The caller must call end once, with the time that the work
// has taken. The error is ErrBusy or the error of the context.
func (l *Limiter) Begin(ctx context.Context, viewer string) (end func(took time.Duration), err error) {
	shares, leave := l.join(viewer)
	for i, s := range shares {
		if err = s.begin(ctx); err != nil {
			release(shares[:i])
			leave()
			return nil, err
		}
	}
	return func(took time.Duration) {
		charge(shares, min(took, longest*l.burst()))
		release(shares)
		leave()
	}, nil
}

// begin takes a slot and waits until work may begin. It releases the slot if waiting fails.
func (s *share) begin(ctx context.Context) error {
	err := s.slots.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	if err = s.wait(ctx, time.Microsecond); err != nil {
		s.slots.Release(1)
	}
	return err
}

// Spend waits until work that takes d may begin. It needs no slot.
func (l *Limiter) Spend(ctx context.Context, viewer string, d time.Duration) error {
	shares, leave := l.join(viewer)
	defer leave()
	for _, s := range shares {
		if err := s.wait(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (l *Limiter) burst() time.Duration {
	if l.total.time == nil {
		return 0
	}
	return time.Duration(l.total.time.Burst()) * time.Microsecond
}

// join returns the shares that the work of a viewer is charged to, the viewer's own share first. The caller must call leave when the work
// is done.
func (l *Limiter) join(viewer string) (shares []*share, leave func()) {
	if viewer == "" {
		return []*share{&l.total}, func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.shares[viewer]
	if own == nil {
		if len(l.shares) >= maxShares {
			maps.DeleteFunc(l.shares, func(_ string, s *share) bool { return s.isUnused() })
		}
		own = &share{slots: semaphore.NewWeighted(l.each)}
		if all := l.total.time; all != nil {
			own.time = rate.NewLimiter(all.Limit()/2, all.Burst()/2)
		}
		l.shares[viewer] = own
	}
	own.users++
	return []*share{own, &l.total}, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if own.users--; own.isUnused() {
			delete(l.shares, viewer)
		}
	}
}

// isUnused returns whether the share is equivalent to a new one.
func (s *share) isUnused() bool {
	return s.users == 0 && (s.time == nil || s.time.Tokens() >= float64(s.time.Burst()))
}

func release(shares []*share) {
	for _, s := range shares {
		s.slots.Release(1)
	}
}

// wait waits until d of work may begin.
func (s *share) wait(ctx context.Context, d time.Duration) error {
	if s.time == nil {
		return ctx.Err()
	}
	err := s.time.WaitN(ctx, min(int(d.Microseconds()), s.time.Burst()))
	if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) { //nolint:forbidigo // the deadline uses the same clock
		return context.DeadlineExceeded // the rate limiter may see that before the context does
	}
	if err != nil {
		return cmp.Or(ctx.Err(), ErrBusy)
	}
	return ctx.Err()
}

// charge counts work that has taken d. Work that took longer than the available tokens leaves a debt.
func charge(shares []*share, d time.Duration) {
	now := time.Now() //nolint:forbidigo // the rate limiter uses the same clock
	for _, s := range shares {
		if s.time == nil {
			continue
		}
		for left, burst := int(d.Microseconds()), s.time.Burst(); left > 0; left -= burst {
			s.time.ReserveN(now, min(left, burst)) // it reserves no more than that at once
		}
	}
}
