package ui

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fluxcd/gating-controller/internal/limit"
)

const (
	// maxPages is how many pages are read at once, of which one is rendered. maxForms is how many uploads are in memory. Others wait.
	maxPages, maxForms = 8, 8
	// maxSending is how many large pages are sent at once. One more is rendered, but not sent.
	maxSending = 32
	// cpuShare is the part of a processor that rendering takes in the long run, and cpuBurst the time before any page waits.
	cpuShare, cpuBurst = 0.2, time.Second
)

// crowd is a group of viewers that share limits: authenticated viewers are one, anonymous viewers the other. Neither uses up what the other needs.
type crowd struct {
	*limit.Limiter
	sends sends
}

// newCrowd returns a crowd. The time of a person who is alone is not bounded.
func newCrowd(alone bool) *crowd {
	if alone {
		return &crowd{Limiter: limit.New(maxPages, maxPages, 0, 0)}
	}
	return &crowd{Limiter: limit.New(maxPages, maxPages/2, cpuShare, cpuBurst)}
}

// begin waits until one more page may be read and rendered.
func (c *crowd) begin(ctx context.Context, viewer string) (end func(took time.Duration), err error) {
	if end, err = c.Begin(ctx, viewer); errors.Is(err, limit.ErrBusy) {
		err = errBusy
	}
	return end, err
}

// crowd returns that of a requester.
func (h *handler) crowd(asks *request) *crowd {
	if asks.view.Bare || asks.viewer.Reader == nil {
		return h.strangers
	}
	return h.people
}

// sends are the large pages that are being sent, with the number of their readers: those of the same page take its memory once.
type sends struct {
	mu      sync.Mutex
	readers map[*packed]int
}

// begin returns whether a page may be sent. Then end must be called.
func (s *sends) begin(p *packed) bool {
	if len(p.body) <= small {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[p] == 0 && len(s.readers) >= maxSending {
		return false
	}
	if s.readers == nil {
		s.readers = map[*packed]int{}
	}
	s.readers[p]++
	return true
}

func (s *sends) end(p *packed) {
	if len(p.body) <= small {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[p]--; s.readers[p] == 0 {
		delete(s.readers, p)
	}
}
