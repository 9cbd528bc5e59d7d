package ui

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

func TestConcurrentLargeResponsesAreLimitedAndShared(t *testing.T) {
	t.Parallel()
	var s sends
	large := func() *packed { return &packed{body: make([]byte, small+1)} }
	first := large()
	if !s.begin(first) {
		t.Fatal("the first page is not sent")
	}
	for i := range maxSending - 1 {
		if !s.begin(large()) {
			t.Fatalf("page %d is not sent", i+2)
		}
	}
	if s.begin(large()) {
		t.Error("one page too many is sent")
	}
	little := &packed{body: make([]byte, small)}
	for range 1000 {
		if !s.begin(first) || !s.begin(little) {
			t.Fatal("a page that takes no more memory is not sent")
		}
		s.end(little)
	}
	for range 1001 {
		s.end(first)
	}
	if len(s.readers) != maxSending-1 || !s.begin(large()) {
		t.Errorf("%d pages are sent, and there is no room for another one", len(s.readers))
	}
}

func TestAnonymousViewersShareTimeAndLeaveUsersTheirs(t *testing.T) {
	t.Parallel()
	r := reader()
	r.bare, r.takes = true, cpuBurst
	options := optionsOf(r, time.UTC)
	options.Anonymous = r
	h := New(options)
	refused := ""
	for i := 1; i < 5 && refused == ""; i++ {
		code, page := asks(t, h, fmt.Sprintf("/?days=%d", i), 3*time.Second)
		if code == http.StatusServiceUnavailable {
			refused = page
		} else if code != http.StatusOK {
			t.Fatalf("page %d is answered with %d", i, code)
		}
	}
	if !strings.Contains(refused, "too many pages are requested at once") || !strings.Contains(refused, "Try again in a moment") {
		t.Errorf("who asks for too much is told: %s", mainOf(refused))
	}
	if code, _ := asks(t, h, "/badge/shop/web.svg", time.Second); code != http.StatusServiceUnavailable {
		t.Errorf("a badge is answered with %d", code)
	}
	r.bare = false
	if code, _ := asks(t, h, "/?days=7", time.Minute); code != http.StatusOK {
		t.Errorf("somebody who logs in is answered with %d", code)
	}
}

func TestBadgesCountAsAnonymousPages(t *testing.T) {
	t.Parallel()
	r := reader()
	r.bare, r.takes = true, cpuBurst
	options := optionsOf(r, time.UTC)
	options.Anonymous = r
	h := New(options)
	for range 5 {
		if code, _ := asks(t, h, "/badge/shop/web.svg", time.Second); code == http.StatusServiceUnavailable {
			return
		}
	}
	t.Error("badges have no share of the time")
}

// slowClock is a clock by which every operation takes cpuBurst.
type slowClock struct{ clock.PassiveClock }

func (slowClock) Since(time.Time) time.Duration { return cpuBurst }

func TestUserLeavesHalfOfTimeToOthers(t *testing.T) {
	t.Parallel()
	r := reader()
	options := optionsOf(r, time.UTC)
	options.Clock = slowClock{options.Clock}
	h := New(options)
	r.key = "greedy"
	for i, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		if code, _ := asks(t, h, fmt.Sprintf("/?days=%d", i+1), time.Second); code != want {
			t.Errorf("page %d of a person who asks for much is answered with %d, not %d", i+1, code, want)
		}
	}
	r.key = "modest"
	if code, page := asks(t, h, "/?days=7", time.Second); code != http.StatusOK {
		t.Errorf("another person is answered with %d: %s", code, mainOf(page))
	}
}

// Each page waits for a slot before it waits for processor time. Otherwise, all pages that arrive while time is left would be rendered.
func TestOnlyConcurrentReadersExceedTimeShare(t *testing.T) {
	t.Parallel()
	r := reader()
	r.bare, r.takes, r.gathers = true, cpuBurst, make(chan struct{})
	options := optionsOf(r, time.UTC)
	options.Anonymous = r
	h := New(options)
	codes := make(chan int)
	const many = 100
	for i := range many {
		go func() {
			path := "/badge/shop/web.svg"
			if i%2 == 0 {
				path = fmt.Sprintf("/?from=%s&days=%d", noon.AddDate(0, 0, i).Format(time.DateOnly), i%14+1)
			}
			code, _ := asks(t, h, path, 2*time.Second)
			codes <- code
		}()
	}
	eventually(t, "as many are read as there are slots", func() bool { return r.asked.Load() >= maxPages })
	close(r.gathers)
	for range many {
		<-codes
	}
	if asked := r.asked.Load(); asked > 2*maxPages {
		t.Errorf("gates were read %d times", asked)
	}
}

func TestSingleUserHasNoRenderingShare(t *testing.T) {
	t.Parallel()
	r := reader()
	r.bare, r.takes = true, 10*cpuBurst
	options := optionsOf(r, time.UTC)
	options.Alone = true
	h := New(options)
	for i := range 5 {
		if code, page := asks(t, h, fmt.Sprintf("/?days=%d", i+1), time.Second); code != http.StatusOK {
			t.Errorf("page %d is answered with %d: %s", i+1, code, mainOf(page))
		}
	}
}

func TestUnauthenticatedListenersBlockNoUser(t *testing.T) {
	t.Parallel()
	l := newLive(&fake{}, optionsOf(&fake{}, time.UTC).Clock)
	for i := range maxLive {
		if l.join(true, "") == nil {
			t.Fatalf("anonymous viewer %d is not notified", i)
		}
	}
	if l.join(true, "") != nil {
		t.Error("more anonymous viewers than allowed are notified")
	}
	if l.join(false, "") == nil {
		t.Error("a person hears nothing")
	}
}
