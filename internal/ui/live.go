package ui

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// maxLive is how many pages are told of changes at once. The others reload by themselves.
	maxLive = 64
	// quiet is how long pages hear nothing before they are told that somebody is there, and the shortest time between two news.
	quiet, burst = 15 * time.Second, time.Second
	// slow is how long a page may take to hear.
	slow = 5 * time.Second
	// retry is when to watch again after an error.
	retry = 5 * time.Second
)

// live tells pages that something has changed. It watches only while somebody listens.
type live struct {
	reader Reader
	mu     sync.Mutex
	heard  map[chan struct{}]bool
	stop   context.CancelFunc
}

func newLive(reader Reader) *live { return &live{reader: reader, heard: map[chan struct{}]bool{}} }

// join returns what gets a value after changes, nil if too many listen.
func (l *live) join() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.heard) >= maxLive {
		return nil
	}
	listener := make(chan struct{}, 1)
	l.heard[listener] = true
	if l.stop == nil {
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		go l.watch(ctx)
	}
	return listener
}

func (l *live) leave(listener chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.heard, listener)
	if len(l.heard) == 0 {
		l.stop()
		l.stop = nil
	}
}

func (l *live) watch(ctx context.Context) {
	for ctx.Err() == nil {
		_ = l.reader.Changes(ctx, l.tell) // the page itself says what is wrong when it is loaded
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

func (l *live) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for listener := range l.heard {
		select {
		case listener <- struct{}{}:
		default: // it has news already
		}
	}
}

// serve sends server-sent events: one after each change.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	listener := l.join()
	if listener == nil {
		http.Error(w, "too many pages are told of changes: this one reloads by itself", http.StatusServiceUnavailable)
		return
	}
	defer l.leave(listener)
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
		case <-time.After(quiet):
			alive = say(": still here\n\n")
		case <-listener:
			if alive = say("data: changed\n\n"); alive {
				select {
				case <-r.Context().Done():
				case <-time.After(burst):
				}
			}
		}
	}
}
