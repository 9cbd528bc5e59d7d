package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// listen opens a stream of changes, and returns its lines until the context ends.
func listen(ctx context.Context, t *testing.T, address string) (code int, lines <-chan string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // it is closed at its end, below
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 10)
	go func() {
		defer close(read)
		defer response.Body.Close() //nolint:errcheck // it is only read
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			if scanner.Text() != "" {
				read <- scanner.Text()
			}
		}
	}()
	return response.StatusCode, read
}

// hears opens a stream of changes, and returns its lines once the cluster is watched.
func hears(t *testing.T, r *fake, handler http.Handler) (lines <-chan string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	_, lines = listen(ctx, t, server.URL)
	<-lines
	eventually(t, "it is watched", func() bool { return r.watched() == 1 })
	return lines
}

func (f *fake) watched() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watches
}

func TestPagesAreNotifiedAndWatchEndsWithLastListener(t *testing.T) {
	t.Parallel()
	r := &fake{}
	server := httptest.NewServer(pages(t, r))
	defer server.Close()
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		_, first := listen(ctx, t, server.URL)
		_, second := listen(ctx, t, server.URL)
		eventually(t, "one watches for all", func() bool { return r.watched() == 1 })
		for _, lines := range []<-chan string{first, second} {
			if line := <-lines; line != "retry: 5000" {
				t.Errorf("round %d: %q", round, line)
			}
		}
		r.changed("shop")
		for _, lines := range []<-chan string{first, second} {
			if line := <-lines; line != "data: changed" {
				t.Errorf("round %d: %q", round, line)
			}
		}
		cancel()
		eventually(t, "nobody watches", func() bool { return r.watched() == 0 })
	}
}

func TestNotificationsOutlastRequestTimeout(t *testing.T) {
	t.Parallel()
	r := &fake{}
	server := httptest.NewUnstartedServer(pages(t, r))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	server.Start()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, lines := listen(ctx, t, server.URL)
	<-lines
	eventually(t, "it is watched", func() bool { return r.watched() == 1 })
	select {
	case line, open := <-lines:
		t.Fatalf("it hears %q, and is open: %v", line, open)
	case <-time.After(500 * time.Millisecond):
	}
	r.changed("shop")
	if line := <-lines; line != "data: changed" {
		t.Errorf("it hears %q", line)
	}
}

func TestNotifiedPagesAreLimited(t *testing.T) {
	t.Parallel()
	r := &fake{}
	server := httptest.NewServer(pages(t, r))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range maxLive {
		if code, _ := listen(ctx, t, server.URL); code != http.StatusOK {
			t.Fatalf("it answers %d", code)
		}
	}
	if code, _ := listen(ctx, t, server.URL); code != http.StatusServiceUnavailable {
		t.Errorf("one too many is answered with %d", code)
	}
}

func TestThousandSlowReadersBlockNoOtherViewer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(pages(t, &fake{gates: many(100)}))
	defer server.Close()
	for range 1000 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it is only opened
		_ = conn.(*net.TCPConn).SetReadBuffer(1)
		if _, err := fmt.Fprint(conn, "GET /what-if HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", response, err)
	}
	_ = response.Body.Close()
}

// Other viewers have just loaded a page, after their notification. That page is older than the next change, which is not known yet.
func TestLateListenerIsNotifiedAgain(t *testing.T) {
	t.Parallel()
	l := newLive(&fake{}, optionsOf(&fake{}, time.UTC).Clock)
	page := l.join(false, "")
	defer l.leave(page)
	hears := func(why string) {
		t.Helper()
		select {
		case <-page.changed:
		default:
			t.Fatalf("%s: it is not told", why)
		}
		if got := l.take(page); !slices.Equal(got, []string{"shop"}) {
			t.Errorf("%s: it is told of %q", why, got)
		}
	}
	l.changed("shop")
	eventually(t, "others were told", func() bool { return l.edition.number.Load() == 1 })
	l.costs(time.Hour) // notifications wait until the test sends them
	l.changed("shop")
	hears("late")
	l.notify()
	hears("once more")
	if left := l.take(page); len(left) > 0 {
		t.Errorf("it will be told of %q a third time", left)
	}
}

func TestViewerDoesNotTakeSlotsOfOthers(t *testing.T) {
	t.Parallel()
	l := newLive(&fake{}, clocktesting.NewFakePassiveClock(noon))
	var greedy []*listener
	for range maxLive {
		greedy = append(greedy, l.join(false, "greedy"))
	}
	if l.join(false, "greedy") != nil {
		t.Error("there is no bound")
	}
	for range maxLive / 2 {
		if l.join(false, "other") == nil {
			t.Fatal("another viewer has no place")
		}
	}
	if l.join(false, "other") != nil {
		t.Error("a viewer has more than its share")
	}
	evicted := 0
	for _, page := range greedy {
		select {
		case <-page.evicted:
			evicted++
		default:
		}
	}
	if evicted != maxLive/2 || len(l.listeners) != maxLive {
		t.Errorf("%d are evicted, %d listen", evicted, len(l.listeners))
	}
	for page := range l.listeners {
		l.leave(page)
	}
	if l.leave(greedy[0]); l.stop != nil {
		t.Error("nobody listens, and the cluster is watched")
	}
}

func TestUnauthorizedViewerIsNotNotified(t *testing.T) {
	t.Parallel()
	r := &fake{err: Refused{http.StatusForbidden, errors.New("you may not list gates")}}
	server := httptest.NewServer(pages(t, r))
	defer server.Close()
	if code, _ := listen(t.Context(), t, server.URL); code != http.StatusForbidden {
		t.Errorf("the code is %d", code)
	}
	if r.watched() != 0 {
		t.Error("the cluster is watched for a viewer without rights")
	}
}
