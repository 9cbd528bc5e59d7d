package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestManyViewersOfOnePageCostOneRendering(t *testing.T) {
	t.Parallel()
	r := reader()
	r.takes = 20 * time.Millisecond
	h := pages(t, r)
	looks := func(why, path string, want int32) {
		t.Helper()
		r.asked.Store(0)
		for range 10 {
			if code, page := asks(t, h, path, time.Minute); code != http.StatusOK {
				t.Fatalf("%s: %d %s", why, code, mainOf(page))
			}
		}
		if asked := r.asked.Load(); asked != want {
			t.Errorf("%s: gates were read %d times, want %d", why, asked, want)
		}
	}
	looks("first", "/", 1)
	looks("another address of the same page", "/?unknown=1", 0)
	looks("another page", "/?days=7", 1)
	looks("the page of a gate", "/gate/shop/web", 1)
	looks("its month", "/gate/shop/web/month", 1)
	r.key = "somebody else"
	looks("another person", "/?days=7", 1)
	r.bare = true
	looks("without a token", "/?days=7", 1)
	r.bare = false
	r.clock.SetTime(r.clock.Now().Add(share*r.takes + time.Second))
	looks("after a moment", "/?days=7", 1)
	r.clock.SetTime(r.clock.Now().Add(-time.Hour))
	looks("after the clock was set back", "/?days=7", 1)
	r.takes = 0
	looks("pages that cost nothing", "/?days=31", 10)
}

func TestConcurrentRequestsForOnePageCostOneRendering(t *testing.T) {
	t.Parallel()
	r := &fake{gates: many(200), takes: time.Second}
	h := pages(t, r)
	for _, path := range []string{"/", "/gate/team-01/gate-0001", "/gate/team-01/gate-0001/month"} {
		r.asked.Store(0)
		var all sync.WaitGroup
		for range maxLive {
			all.Go(func() {
				if code, page := asks(t, h, path, time.Minute); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, mainOf(page))
				}
			})
		}
		all.Wait()
		if asked := r.asked.Load(); asked != 1 {
			t.Errorf("%s: gates were read %d times", path, asked)
		}
	}
}

func TestCanceledRenderingLeavesPageToNextRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newRenderCache(clocktesting.NewFakePassiveClock(noon))
		renders, ends := make(chan struct{}), make(chan struct{})
		go func() {
			_, _ = c.page(t.Context(), "page", func() (*packed, time.Duration, error) {
				close(renders)
				<-ends
				return nil, time.Minute, context.Canceled
			})
		}()
		<-renders
		rendered := 0
		render := func() (*packed, time.Duration, error) {
			rendered++
			return &packed{}, time.Minute, nil
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.page(gone, "page", render); err == nil || rendered > 0 {
			t.Error("two requests render the same page")
		}
		for _, key := range []string{"another page", "", ""} {
			if _, err := c.page(t.Context(), key, render); err != nil {
				t.Errorf("%q: %v", key, err)
			}
		}
		if rendered != 3 {
			t.Errorf("%d pages are rendered meanwhile", rendered)
		}
		go func() { _, _ = c.page(t.Context(), "page", render) }()
		synctest.Wait()
		if rendered != 3 {
			t.Error("two requests render the same page")
		}
		close(ends)
		synctest.Wait()
		if rendered != 4 {
			t.Error("the next request does not render the page")
		}
	})
}

func TestNotificationInvalidatesRecentPages(t *testing.T) {
	t.Parallel()
	r := reader()
	r.takes = time.Second
	handler := pages(t, r)
	lines := hears(t, r, handler)
	shown := func() string {
		_, page := asks(t, handler, "/", time.Minute)
		return page
	}
	if page := shown(); !strings.Contains(page, "1 open, 1 closed") {
		t.Fatal(mainOf(page))
	}
	r.gates[0].Status.LastTransition.State = "closed"
	if page := shown(); !strings.Contains(page, "1 open, 1 closed") {
		t.Errorf("it is made again before a moment is over: %s", mainOf(page))
	}
	r.changed("shop")
	if line := <-lines; line != "data: changed" {
		t.Fatal(line)
	}
	if page := shown(); !strings.Contains(page, "0 open, 2 closed") {
		t.Errorf("after the news, a page is from before: %s", mainOf(page))
	}
}

func TestPageKeysAreUnique(t *testing.T) {
	t.Parallel()
	h := &handler{Options: optionsOf(&fake{}, time.UTC), live: newLive(&fake{}, nil)}
	h.AnyZone = true
	keys := map[string]string{}
	for _, path := range []string{
		"/", "/?zone=UTC", "/?zone=Asia%2FTokyo", "/?days=7", "/?text=a%26days%3D7", "/?text=a&days=7", "/%3Fdays=7", "/?text=%22", "/?text=%20",
		"/gate/shop/web", "/gate/shop%2Fweb", "/gate/shop/web%3Fzone=UTC", "/gate/shop/web?zone=UTC", "/gate/shop/web%2Fmonth", "/gate/shop/web/month", "/gate/shop/web/month%3F",
	} {
		for _, viewer := range []Viewer{{}, {Bare: true}, {Key: "a"}, {Key: `a" /?`}, {Key: "\xff"}, {Key: "�"}, {Key: `\xff`}, {Key: "/?zone=UTC"}} {
			asks := &request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), viewer: viewer}
			var err error
			if asks.view, err = h.view(asks, nil); err != nil {
				t.Fatal(path, err)
			}
			key, what := h.live.edition.key(asks), fmt.Sprintf("%s of %q", path, viewer.Key)
			if other := keys[key]; other != "" {
				t.Errorf("%s has the key of %s: %q", what, other, key)
			}
			keys[key] = what
			for _, method := range []string{http.MethodHead, http.MethodPost} {
				if asks.Method = method; h.live.edition.key(asks) != "" {
					t.Errorf("%s %s is kept", method, path)
				}
			}
		}
	}
}

func TestRequestedPagesStayAndOthersAreEvicted(t *testing.T) {
	t.Parallel()
	k := newCache[int](1000)
	k.put("asked", 1, 10)
	for i := range 1000 {
		k.put(fmt.Sprintf("key-%04d", i), i, 12)
		if value, ok := k.get("asked"); !ok || value != 1 {
			t.Fatalf("what is asked for is gone after %d others: %d", i, value)
		}
		if n := len(k.young) + len(k.old); n > 60 || k.size > 500 {
			t.Fatalf("%d are kept, the young ones have %d bytes", n, k.size)
		}
	}
	if _, ok := k.get("key-0000"); ok {
		t.Error("the first one is kept")
	}
	for range 3 {
		if k.put("large", 1, 501); k.young["large"].value == 1 {
			t.Error("what is larger than half of all is kept")
		}
	}
	if _, ok := k.get("asked"); !ok {
		t.Error("what is too large pushes out the others")
	}
}

func TestRepeatedPutCountsOnce(t *testing.T) {
	t.Parallel()
	k := newCache[string](1000)
	for range 100 {
		k.put("key", "value", 97)
	}
	if value, ok := k.get("key"); !ok || value != "value" || k.size != 100 || len(k.old) > 0 {
		t.Errorf("%q, %d bytes, %d old ones", value, k.size, len(k.old))
	}
}
