package ui

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// recent keeps pages as they were a moment ago, so that many who look at the same page cost what one costs.
type recent struct {
	kept *keeper[moment]

	mu sync.Mutex
	// turns are those of pages that are made, by their keys.
	turns map[string]*turn
}

// turn is whose turn it is to make a page, and how many make it or wait for that.
type turn struct {
	slot chan struct{}
	many int
}

func newRecent() *recent {
	return &recent{kept: newKeeper[moment](maxRecent), turns: map[string]*turn{}}
}

// turn waits until nobody else makes the page of a key. Its end lets the next one look whether there is one now.
func (r *recent) turn(ctx context.Context, key string) (over func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	of := r.join(key)
	done, err := enter(ctx, of.slot)
	if err != nil {
		r.leave(key, of)
		return nil, err
	}
	return func() {
		done()
		r.leave(key, of)
	}, nil
}

func (r *recent) join(key string) *turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.turns[key]
	if of == nil {
		of = &turn{slot: make(chan struct{}, 1)}
		r.turns[key] = of
	}
	of.many++
	return of
}

func (r *recent) leave(key string, of *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of.many--; of.many == 0 {
		delete(r.turns, key)
	}
}

// moment is a page for as long as it is returned to whoever asks for it.
type moment struct {
	*packed
	until time.Time
}

// get returns the page of a moment ago, nil if there is none.
func (r *recent) get(key string, now time.Time) *packed {
	m, ok := r.kept.get(key)
	// A clock that was set back makes no moment last longer.
	if left := m.until.Sub(now); ok && left > 0 && left <= burst {
		return m.packed
	}
	return nil
}

// put keeps a page which took some time: the longer that was, the longer is the moment. Nothing is kept under no key.
func (r *recent) put(key string, page *packed, now time.Time, took time.Duration) {
	if key != "" {
		r.kept.put(key, moment{page, now.Add(min(burst, share*took))}, len(page.body))
	}
}

// edition counts how often pages were told of changes: none shows what was before.
type edition struct{ number atomic.Int64 }

// momentary names a page of a viewer until pages are told of the next change. It is empty for one that is not kept.
func (e *edition) momentary(asks *request) string {
	if asks.Method != http.MethodGet {
		return ""
	}
	return fmt.Sprintf("%d %t %q %s?%s", e.number.Load(), asks.view.Bare, asks.viewer.Key, asks.URL.EscapedPath(), asks.view.query.Encode())
}
