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
	// maxLive is how many pages of a crowd are notified of changes at once, divided among its viewers. The others reload by themselves.
	maxLive = 64
	// quiet is how long pages hear nothing before they are told that somebody is there, and the shortest time between two news.
	quiet, burst = 15 * time.Second, time.Second
	// share is of how many parts of the time pages may take one that load themselves again: after that, news wait. The same page is not made
	// more often.
	share = 10
	// slow is how long a page may take to hear.
	slow = 5 * time.Second
	// retry is when to watch again after an error.
	retry = 5 * time.Second
	// maxPlaces is how many namespaces of changes are noted for a page. More count as all.
	maxPlaces = 100
)

// everywhere stands for all namespaces.
const everywhere = ""

// live tells pages that something has changed. It watches only while somebody listens.
type live struct {
	viewers Viewers
	clock   clock.PassiveClock
	edition edition

	mu    sync.Mutex
	heard map[*listener]bool
	stop  context.CancelFunc
	// told is when pages were told last, cost how long pages were made since then, and due whether they are about to be told.
	told time.Time
	cost time.Duration
	due  bool
}

// listener is a page that is told of changes.
type listener struct {
	bare   bool
	viewer string
	wake   chan struct{}
	// evicted is closed when another viewer gets its place.
	evicted chan struct{}
	// where are the namespaces of changes since it was told last.
	where map[string]bool
}

func newLive(viewers Viewers, clock clock.PassiveClock) *live {
	return &live{viewers: viewers, clock: clock, heard: map[*listener]bool{}}
}

// join returns a listener, nil if its crowd is full. Then a viewer with fewer listeners takes the place of one of the viewer that has
// the most, so that no viewer keeps the others out.
func (l *live) join(bare bool, viewer string) *listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowd, by, most := 0, map[string]int{}, (*listener)(nil)
	for other := range l.heard {
		if other.bare == bare {
			crowd++
			by[other.viewer]++
		}
	}
	if crowd >= maxLive {
		for other := range l.heard {
			if other.bare == bare && (most == nil || by[other.viewer] > by[most.viewer]) {
				most = other
			}
		}
		if by[most.viewer] <= by[viewer]+1 {
			return nil
		}
		delete(l.heard, most)
		close(most.evicted)
	}
	joins := &listener{bare: bare, viewer: viewer, wake: make(chan struct{}, 1), evicted: make(chan struct{}), where: map[string]bool{}}
	l.heard[joins] = true
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
	delete(l.heard, leaves)
	if len(l.heard) == 0 && l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

func (l *live) watch(ctx context.Context) {
	for ctx.Err() == nil {
		_ = l.viewers.Changes(ctx, l.changed) // the page itself says what is wrong when it is loaded
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// costs notes that a page has taken some time.
func (l *live) costs(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cost += d
}

// changed notes a change in a namespace for each page. They are told at once, or when pages have used their share of the time.
func (l *live) changed(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for page := range l.heard {
		page.where[namespace] = true
		if len(page.where) > maxPlaces {
			page.where = map[string]bool{everywhere: true}
		}
	}
	if !l.due {
		l.due = true
		time.AfterFunc(pause(l.told, l.cost, l.clock.Now()), l.tell)
	}
}

// pause returns how long to wait with news, after pages were told and have cost some time since then.
func pause(told time.Time, cost time.Duration, now time.Time) time.Duration {
	return max(0, told.Add(max(burst, share*cost)).Sub(now))
}

func (l *live) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due, l.told, l.cost = false, l.clock.Now(), 0
	l.edition.number.Add(1)
	for page := range l.heard {
		if len(page.where) == 0 {
			continue
		}
		select {
		case page.wake <- struct{}{}:
		default: // it has news already
		}
	}
}

// take returns the namespaces of changes that a page has not been told of. It is told of them once more if others are about to be told of
// some: what it loads before that may be from before these.
func (l *live) take(page *listener) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	where := slices.Collect(maps.Keys(page.where))
	if !l.due {
		clear(page.where)
	}
	return where
}

// serve sends server-sent events: one after each change that the viewer may see, for as long as the viewer may see anything.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	viewer, err := l.viewers.Of(r)
	if err == nil { // a viewer who may see no Gate takes no place
		_, err = viewer.Gates(r.Context(), "", "")
	}
	if err != nil {
		code := codeOf(err)
		http.Error(w, http.StatusText(code), code)
		return
	}
	page := l.join(viewer.Bare, viewer.Person)
	if page == nil {
		http.Error(w, "too many pages are told of changes: this one reloads by itself", http.StatusServiceUnavailable)
		return
	}
	defer l.leave(page)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(slow)) //nolint:forbidigo // a deadline of the network, decides nothing
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
		case <-page.wake:
			sees, err := l.sees(r, l.take(page))
			alive = err == nil && (!sees || say("data: changed\n\n"))
		}
	}
}

// sees returns whether the viewer, who may see less by now, sees changes in some namespaces.
func (l *live) sees(r *http.Request, where []string) (bool, error) {
	viewer, err := l.viewers.Of(r)
	if err != nil {
		return false, err
	}
	return viewer.Sees(r.Context(), where)
}
