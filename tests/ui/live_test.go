package ui

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// faulty serves a page with the real script, whose minutes and seconds are shortened. The test controls its responses.
type faulty struct {
	testing.TB
	// code is the status code of the page, and ofChanges that of the changes. number is the number on the page.
	code, ofChanges, number atomic.Int32
	// refused counts the refused requests for changes.
	refused atomic.Int32
	// changed sends a change to all listeners, ends ends their streams.
	changed, ends chan struct{}
	// slow delays the next response with a page until it is closed, unless it is nil.
	slow atomic.Pointer[chan struct{}]
	url  string
}

func newFaulty(t testing.TB) *faulty {
	f := &faulty{TB: t, changed: make(chan struct{}), ends: make(chan struct{})}
	f.code.Store(http.StatusOK)
	f.ofChanges.Store(http.StatusOK)
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", f.page)
	mux.HandleFunc("/changes", f.changes)
	mux.HandleFunc("/live.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(harness.Root(), "internal", "ui", "static", "live.js"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	f.url = server.URL + "/"
	return f
}

func (f *faulty) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	number, code := f.number.Load(), int(f.code.Load())
	if slow := f.slow.Swap(nil); slow != nil {
		<-*slow
	}
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `<!DOCTYPE html><title>x</title><script>const every = window.setInterval, after = window.setTimeout, part = new URLSearchParams(location.search).get("part");
		window.setInterval = function (f, ms) { return every(f, ms / part); }; window.setTimeout = function (f, ms) { return after(f, ms / 50); };</script>
		<script src="live.js" data-changes="changes" defer></script><p id="live"></p><main id="main">%d</main><p id="foot"></p>`, number)
}

func (f *faulty) changes(w http.ResponseWriter, r *http.Request) {
	if code := int(f.ofChanges.Load()); code != http.StatusOK {
		w.WriteHeader(code)
		f.refused.Add(1)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for text := "retry: 50\n\n"; ; text = "data: changed\n\n" {
		_, _ = fmt.Fprint(w, text)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-f.changed:
		case <-f.ends:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// opens opens the page in a tab. There, a minute is shortened to a part of it.
func (f *faulty) opens(tab *tab, part string) {
	tab.navigate(f.url + "?part=" + part)
	tab.until("the page is live", `document.getElementById("live").textContent === "Live."`)
}

func (f *faulty) waits(what string, is func() bool) {
	f.Helper()
	if err := harness.Eventually(f.Context(), harness.Patience, what, func() error {
		if !is() {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		f.Fatal(err)
	}
}

// shows waits until the page has a number and a message.
func (f *faulty) shows(tab *tab, number int, message string) {
	tab.Helper()
	tab.until(fmt.Sprintf("%d: %s", number, message), fmt.Sprintf(`document.getElementById("main").textContent === "%d" && document.getElementById("live").textContent.startsWith(%q)`, number, message))
}

func TestFailedPageReloadsItself(t *testing.T) {
	t.Parallel()
	f, tab := newFaulty(t), newBrowser(t).open()
	f.opens(tab, "0.01")
	f.number.Store(1)
	f.code.Store(http.StatusServiceUnavailable)
	f.changed <- struct{}{}
	f.shows(tab, 0, "The page cannot be rendered now. It shows an earlier state.")
	f.code.Store(http.StatusOK)
	f.shows(tab, 1, "Live.")
}

func TestReconnectedPageShowsMissedChanges(t *testing.T) {
	t.Parallel()
	f, tab := newFaulty(t), newBrowser(t).open()
	f.opens(tab, "0.01")
	f.number.Store(1)
	f.ends <- struct{}{}
	f.shows(tab, 1, "Live.")
}

func TestDisconnectedPageIsLiveAgainWithinMinute(t *testing.T) {
	t.Parallel()
	f, tab := newFaulty(t), newBrowser(t).open()
	f.opens(tab, "100")
	f.ofChanges.Store(http.StatusServiceUnavailable)
	f.ends <- struct{}{}
	f.waits("changes are refused", func() bool { return f.refused.Load() > 0 })
	f.shows(tab, 0, "Not live")
	f.ofChanges.Store(http.StatusOK)
	f.shows(tab, 0, "Live.")
}

func TestLateResponseReplacesNoNewerOne(t *testing.T) {
	t.Parallel()
	f, tab := newFaulty(t), newBrowser(t).open()
	f.opens(tab, "0.01")
	late := make(chan struct{})
	f.slow.Store(&late)
	f.changed <- struct{}{} // this response has the current number, and arrives late
	f.waits("the page is requested", func() bool { return f.slow.Load() == nil })
	f.number.Store(1)
	f.changed <- struct{}{}
	f.shows(tab, 1, "Live.")
	close(late)
	tab.eval(`new Promise(function (done) { fetch("/?third").then(function (r) { return r.text(); }).then(function () { requestAnimationFrame(function () { requestAnimationFrame(done); }); }); })`, nil)
	f.shows(tab, 1, "Live.")
}
