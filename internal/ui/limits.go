package ui

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fluxcd/gating-controller/internal/limit"
)

const (
	// maxPages bounds how many pages are read at once. Only one of them is rendered at a time. maxForms bounds the number of uploads in
	// memory. Further requests wait.
	maxPages, maxForms = 8, 8
	// maxSending bounds how many large pages are sent at once. One more page may be rendered in the meantime.
	maxSending = 32
	// cpuShare is the fraction of a CPU that rendering may use in the long run. cpuBurst is the CPU time after which pages have to
	// wait.
	cpuShare, cpuBurst = 0.2, time.Second
)

// viewerLimits are shared by a group of viewers. Authenticated and anonymous viewers have separate limits, so that neither group uses up
// the limits of the other.
type viewerLimits struct {
	*limit.Limiter
	sends sends
}

// newViewerLimits returns the limits of a group. The CPU time of a single local user is not bounded.
func newViewerLimits(alone bool) *viewerLimits {
	if alone {
		return &viewerLimits{Limiter: limit.New(maxPages, maxPages, 0, 0)}
	}
	return &viewerLimits{Limiter: limit.New(maxPages, maxPages/2, cpuShare, cpuBurst)}
}

// begin waits until the viewer may read and render one more page. The caller must call end afterwards, with the CPU time used for the
// page.
func (v *viewerLimits) begin(ctx context.Context, viewer string) (end func(took time.Duration), err error) {
	if end, err = v.Begin(ctx, viewer); errors.Is(err, limit.ErrBusy) {
		err = errBusy
	}
	return end, err
}

// limitsOf returns the limits for a requester.
func (h *handler) limitsOf(asks *request) *viewerLimits {
	if asks.view.Bare || asks.viewer.Reader == nil {
		return h.anonymous
	}
	return h.authenticated
}

// sends counts the readers of each large page that is being sent. Readers of the same page share the memory of the page.
type sends struct {
	mu      sync.Mutex
	readers map[*packed]int
}

// begin returns whether a page may be sent. It returns false if maxSending other large pages are being sent. If it returns true, the
// caller must call end once the page has been sent.
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
