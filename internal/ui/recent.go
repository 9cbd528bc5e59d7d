package ui

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// recent keeps pages as they were a moment ago, so that many who look at the same page cost what one costs.
type recent struct{ kept *keeper[moment] }

// moment is a page for as long as it is returned to whoever asks for it.
type moment struct {
	*packed
	until time.Time
}

// get returns the page of a moment ago, nil if there is none.
func (r recent) get(key string, now time.Time) *packed {
	m, ok := r.kept.get(key)
	// A clock that was set back makes no moment last longer.
	if left := m.until.Sub(now); ok && left > 0 && left <= burst {
		return m.packed
	}
	return nil
}

// put keeps a page which took some time: the longer that was, the longer is the moment. Nothing is kept under no key.
func (r recent) put(key string, page *packed, now time.Time, took time.Duration) {
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
