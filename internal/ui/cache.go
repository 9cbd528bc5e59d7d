package ui

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/limit"
)

// cache stores values up to a total size in bytes. It evicts the values that have not been used for the longest time.
type cache[V any] struct {
	mu sync.Mutex
	// young contains the entries that were stored or read last. When it reaches half of the size, it replaces old.
	young, old map[string]entry[V]
	size, most int
}

type entry[V any] struct {
	value V
	size  int
}

func newCache[V any](most int) *cache[V] {
	return &cache[V]{young: map[string]entry[V]{}, most: most}
}

// get returns the value of a key. It returns false if the value was never stored or was evicted.
func (c *cache[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.young[key]
	if !ok {
		if found, ok = c.old[key]; ok {
			c.add(key, found)
		}
	}
	return found.value, ok
}

// put stores a value of size bytes.
func (c *cache[V]) put(key string, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key, entry[V]{value, size + len(key)})
}

func (c *cache[V]) add(key string, e entry[V]) {
	if e.size > c.most/2 {
		return // the value would leave no room for other values
	}
	if c.size+e.size > c.most/2 {
		c.old, c.young, c.size = c.young, map[string]entry[V]{}, 0
	}
	c.size += e.size - c.young[key].size
	c.young[key] = e
}

// renderCache stores rendered pages for a short time, so that many requests for the same page cost as much as one.
type renderCache struct {
	clock clock.PassiveClock
	pages *cache[moment]
	// turns ensures that only one request at a time renders the page of a key.
	turns *limit.Limiter
}

// moment is a cached page with the interval in which it is served.
type moment struct {
	*packed
	from, until time.Time
}

func newRenderCache(clock clock.PassiveClock) *renderCache {
	return &renderCache{clock, newCache[moment](maxRendered), limit.New(math.MaxInt, 1, 0, 0)}
}

// page returns the page of a key from the cache, or renders it and caches it for the duration returned by render. An empty key disables
// the cache. Concurrent requests for a key wait for the first one. If the first one is canceled, the next one renders the page.
func (c *renderCache) page(ctx context.Context, key string, render func() (*packed, time.Duration, error)) (*packed, error) {
	if key == "" {
		page, _, err := render()
		return page, err
	}
	if page := c.get(key); page != nil {
		return page, nil
	}
	end, err := c.turns.Begin(ctx, key)
	if err != nil {
		return nil, err
	}
	defer end(0)
	if page := c.get(key); page != nil {
		return page, nil
	}
	page, lasts, err := render()
	if now := c.clock.Now(); err == nil && lasts > 0 {
		c.pages.put(key, moment{page, now, now.Add(lasts)}, len(page.body))
	}
	return page, err
}

func (c *renderCache) get(key string) *packed {
	// A clock without a monotonic reading may have been set back.
	now := c.clock.Now()
	if m, ok := c.pages.get(key); ok && !now.Before(m.from) && now.Before(m.until) {
		return m.packed
	}
	return nil
}

// edition is the number of notifications that the pages have received. It is part of the cache keys, so that no page is older than the
// last notification.
type edition struct{ number atomic.Int64 }

// key returns the cache key of a viewer's page. It changes with each notification. It is empty for methods other than GET, which are not
// cached.
func (e *edition) key(asks *request) string {
	if asks.Method != http.MethodGet {
		return ""
	}
	return fmt.Sprintf("%d %t %q %s?%s", e.number.Load(), asks.view.Bare, asks.viewer.Key, asks.URL.EscapedPath(), asks.view.query.Encode())
}
