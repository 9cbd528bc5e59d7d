package controllers

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/lock"
)

// lockQueue asks a book for changes, and looks how long it is waited for them.
type lockQueue struct {
	*testing.T
	*book
	patience time.Duration
}

// asks asks for a change of a Gate.
func (w *lockQueue) asks(gate string) *change {
	return w.order(newChange(gate, &lock.Share{Locked: true}, ""))
}

// begins asks for a change of a Gate, whose write begins.
func (w *lockQueue) begins(gate string) (*change, *lockWrite) {
	w.Helper()
	return w.asks(gate), w.begin()
}

// waits waits for a change.
func (w *lockQueue) waits(what string, c *change, want time.Duration, text string) {
	w.Helper()
	began := time.Now()
	err := w.wait(w.Context(), c, w.patience)
	if took := time.Since(began); took != want || err == nil || err.Error() != text {
		w.Errorf("%s: waits %s and gets %v, want %s and %q", what, took, err, want, text)
	}
}

func TestAWriteThatIsLateIsWaitedForOnceUntilOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 2 * time.Second
		const late, failed = "is not written yet", "is not written yet, the last time it failed: broken"
		w := &lockQueue{T: t, book: &book{known: true}, patience: patience}
		broken := errors.New("broken")

		first, write := w.begins("first")
		w.waits("the first one", first, patience, late)
		w.isLate(write)
		second := w.asks("second")
		w.waits("one behind what is late", second, 0, late)
		w.end(write, broken)
		if <-first.done; !errors.Is(first.err, broken) {
			t.Errorf("the first one gets %v in the end", first.err)
		}

		write = w.begin()
		w.waits("one after what was late and failed", second, 0, failed)
		w.end(write, broken)
		third, write := w.begins("third")
		w.waits("one after what failed in time", third, patience, failed)
		w.isLate(write)
		w.end(write, nil)
		fourth, next := w.begins("fourth")
		w.waits("one after what was late and succeeded", fourth, patience, late)
		w.isLate(write) // it has ended
		w.waits("one whose write is not late itself", fourth, patience, late)
		w.isLate(next)
		w.waits("one whose write is late", fourth, 0, late)
	})
}

func TestAChangeThatIsLookedAt(t *testing.T) {
	order := func(b *book, locked bool) *change {
		return b.order(newChange("apps/production", &lock.Share{Locked: locked}, "1"))
	}
	for name, tc := range map[string]struct {
		newer, over  bool
		want         error
		queued, kept int
	}{
		"it changes something":                      {queued: 1, kept: 1},
		"it changes nothing":                        {over: true},
		"it changes something, and is out of date":  {newer: true, want: errOutdated, kept: 1},
		"it changes nothing, but one that is newer": {newer: true, over: true, want: errOutdated, kept: 1},
	} {
		b := newBook()
		c := order(b, false)
		if tc.newer {
			order(b, true)
		}
		if err := b.looked(c, tc.over); !errors.Is(err, tc.want) || len(b.waiting) != tc.queued || len(b.asked) != tc.kept {
			t.Errorf("%s: %v, %d are queued and %d kept, want %v, %d and %d", name, err, len(b.waiting), len(b.asked), tc.want, tc.queued, tc.kept)
		}
	}
}

func TestAnOrderThatIsOverWaitsForNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for stands, want := range map[time.Duration]time.Duration{0: 0, standingFor: standingFor, time.Hour: time.Minute} {
			began := time.Now()
			writes := &LockWrites{pending: map[string]bool{"apps": true}, failed: map[string]error{}, ended: make(chan lockWritten, 1)}
			time.AfterFunc(time.Minute, func() { writes.ended <- lockWritten{"apps", errors.New("broken")} })
			result := &outcomes{}
			order{locks: writes, stands: func() bool { return time.Since(began) < stands }}.report(result, client.ObjectKey{})
			if took := time.Since(began); took != want || result.over != (want < time.Minute) || (result.err() != nil) == result.over {
				t.Errorf("stands for %s: it waits for %s, over is %t, the error %v", stands, took, result.over, result.err())
			}
		}
	})
}
