package ui

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/fluxcd/gating-controller/internal/budget"
)

const (
	// maxReading is for how many pages the cluster is read at once, and maxSending how many large pages are sent. One page more waits until it
	// is read, and is not sent.
	maxReading, maxSending = 16, 32
	// cpuShare is how much of a processor making pages takes in the long run, and cpuBurst how much time before anybody waits for a page.
	cpuShare, cpuBurst = 0.2, time.Second
	// maxBudgets is from how many budgets of viewers on those that are unused are forgotten.
	maxBudgets = 1000
)

// crowd has what viewers of one kind may use together: those that log in are one, all others another. None uses up what the other needs.
type crowd struct {
	budget  *budget.Budget
	reading *slots

	mu sync.Mutex
	// budgets has those of viewers.
	budgets map[string]*budget.Budget
	// lent is how many large pages are sent.
	lent int
}

// newCrowd returns a crowd. One person alone is not bounded.
func newCrowd(alone bool) *crowd {
	c := &crowd{reading: newSlots(maxReading, alone), budgets: map[string]*budget.Budget{}}
	if !alone {
		c.budget = budget.New(cpuShare, cpuBurst)
	}
	return c
}

// begin waits for a slot to read one more page, and then until the pages before it have taken no more than their share of the time. The slot
// comes first, so that only as many pages as there are slots can exceed the share. The end makes room for the next.
func (c *crowd) begin(ctx context.Context, viewer string) (done func(), err error) {
	if done, err = c.reading.enter(ctx, viewer); err != nil {
		return nil, err
	}
	if err = c.of(viewer).Wait(ctx); err == nil {
		return done, nil
	}
	done()
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		err = errBusy
	}
	return nil, err
}

// of returns the budget of a viewer, half of the crowd's. Strangers are one viewer without a name, and have all of it.
func (c *crowd) of(viewer string) *budget.Budget {
	if viewer == "" {
		return c.budget
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budgets[viewer] == nil {
		if len(c.budgets) >= maxBudgets {
			maps.DeleteFunc(c.budgets, func(_ string, b *budget.Budget) bool { return b.Unused() })
		}
		c.budgets[viewer] = c.budget.Half()
	}
	return c.budgets[viewer]
}

// budget returns that of the viewer who asks.
func (h *handler) budget(asks *request) *budget.Budget { return h.crowd(asks).of(asks.viewer.Person) }

// crowd returns that of who asks.
func (h *handler) crowd(asks *request) *crowd {
	if asks.view.Bare || asks.viewer.Reader == nil {
		return h.strangers
	}
	return h.people
}

// lend returns whether there is room for one more page that is sent, and takes it. Readers of the same page share it.
func (c *crowd) lend(p *packed) bool {
	if len(p.body) <= small {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.readers == 0 && c.lent >= maxSending {
		return false
	}
	if p.readers++; p.readers == 1 {
		c.lent++
	}
	return true
}

// back makes room again.
func (c *crowd) back(p *packed) {
	if len(p.body) <= small {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.readers--; p.readers == 0 {
		c.lent--
	}
}
