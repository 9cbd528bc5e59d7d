package ui

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxLive bounds how many pages of a group of viewers are notified of changes. The pages are divided among the viewers. Other pages
	// reload periodically.
	maxLive = 64
	// quiet is the interval of keepalives. burst is the minimum time between two notifications.
	quiet, burst = 15 * time.Second, time.Second
	// share bounds the reloads of notified pages. If rendering has taken a time t since the last notification, the next notification is sent
	// at least share*t after the last one. Rendered pages are cached by the same rule.
	share = 10
	// slow bounds the time for sending a notification.
	slow = 5 * time.Second
	// retry is the delay before watching again after an error.
	retry = 5 * time.Second
	// maxPlaces bounds how many namespaces of changes are stored per page. If there are more, all namespaces count as changed.
	maxPlaces = 100
)

// everywhere means all namespaces.
const everywhere = ""

// live notifies pages of changes. It watches the cluster only while there are listeners.
type live struct {
	viewers Viewers
	clock   clock.PassiveClock
	edition edition

	mu        sync.Mutex
	listeners map[*listener]bool
	stop      context.CancelFunc
	// notified is the time of the last notification. cost is the rendering time of pages since then, and due is true if a notification is
	// scheduled.
	notified time.Time
	cost     time.Duration
	due      bool
}

// listener is a page that is notified of changes.
type listener struct {
	bare    bool
	viewer  string
	changed chan struct{}
	// evicted is closed when another viewer takes the place of the page.
	evicted chan struct{}
	// where contains the namespaces with changes since the page was last notified.
	where map[string]bool
}

func newLive(viewers Viewers, clock clock.PassiveClock) *live {
	return &live{viewers: viewers, clock: clock, listeners: map[*listener]bool{}}
}

// join adds a page to the listeners, or returns nil if its group of viewers is full. In a full group, it evicts a page of the viewer with
// the most pages, provided that this viewer then still has at least as many pages as the joining viewer.
func (l *live) join(bare bool, viewer string) *listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, by, most := 0, map[string]int{}, (*listener)(nil)
	for other := range l.listeners {
		if other.bare == bare {
			n++
			by[other.viewer]++
		}
	}
	if n >= maxLive {
		for other := range l.listeners {
			if other.bare == bare && (most == nil || by[other.viewer] > by[most.viewer]) {
				most = other
			}
		}
		if by[most.viewer] <= by[viewer]+1 {
			return nil
		}
		delete(l.listeners, most)
		close(most.evicted)
	}
	joins := &listener{bare: bare, viewer: viewer, changed: make(chan struct{}, 1), evicted: make(chan struct{}), where: map[string]bool{}}
	l.listeners[joins] = true
	if l.stop == nil {
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		go l.watch(ctx)
	}
	return joins
}

func (l *live) leave(leaves *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listeners, leaves)
	if len(l.listeners) == 0 && l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

func (l *live) watch(ctx context.Context) {
	for ctx.Err() == nil {
		_ = l.viewers.Changes(ctx, l.changed) // the page reports the error when it is loaded
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// costs adds d to the rendering time since the last notification.
func (l *live) costs(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cost += d
}

// changed records a change in a namespace for each page, and schedules a notification. The notification is sent at once, or later if the
// last one was less than burst ago or rendering has taken too much of the time since then.
func (l *live) changed(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for page := range l.listeners {
		page.where[namespace] = true
		if len(page.where) > maxPlaces {
			page.where = map[string]bool{everywhere: true}
		}
	}
	if !l.due {
		l.due = true
		time.AfterFunc(pause(l.notified, l.cost, l.clock.Now()), l.notify)
	}
}

// pause returns how long to delay a notification, given the rendering time since the last one.
func pause(notified time.Time, cost time.Duration, now time.Time) time.Duration {
	return max(0, notified.Add(max(burst, share*cost)).Sub(now))
}

func (l *live) notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due, l.notified, l.cost = false, l.clock.Now(), 0
	l.edition.number.Add(1)
	for page := range l.listeners {
		if len(page.where) == 0 {
			continue
		}
		select {
		case page.changed <- struct{}{}:
		default: // the page has already been notified
		}
	}
}

// take returns the namespaces that have changed since the page was last notified, and resets them. It keeps them if another notification
// is scheduled, because the page may still load data from before these changes.
func (l *live) take(page *listener) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	where := slices.Collect(maps.Keys(page.where))
	if !l.due {
		clear(page.where)
	}
	return where
}

// serve sends server-sent events, one after each change that is visible to the viewer, as long as the viewer may see anything.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	viewer, err := l.viewers.Of(r)
	if err == nil { // a viewer who may not see any Gate does not count towards maxLive
		_, err = viewer.Gates(r.Context(), "", "")
	}
	if err != nil {
		code := codeOf(err)
		http.Error(w, http.StatusText(code), code)
		return
	}
	page := l.join(viewer.Bare, viewer.Person)
	if page == nil {
		http.Error(w, "too many pages are notified of changes: this one reloads on its own", http.StatusServiceUnavailable)
		return
	}
	defer l.leave(page)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(slow)) //nolint:forbidigo // a network deadline
		_, err := fmt.Fprint(w, text)
		return err == nil && control.Flush() == nil
	}
	for alive := say("retry: 5000\n\n"); alive; {
		select {
		case <-r.Context().Done():
			return
		case <-page.evicted:
			return
		case <-time.After(quiet):
			_, err := l.viewers.Of(r)
			alive = err == nil && say(": still here\n\n")
		case <-page.changed:
			sees, err := l.sees(r, l.take(page))
			alive = err == nil && (!sees || say("data: changed\n\n"))
		}
	}
}

// sees returns whether the viewer may see a change in one of the namespaces. It authenticates the request again, because permissions may
// have changed.
func (l *live) sees(r *http.Request, where []string) (bool, error) {
	viewer, err := l.viewers.Of(r)
	if err != nil {
		return false, err
	}
	return viewer.Sees(r.Context(), where)
}
