package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs a test with a fake clock.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// work begins work of a viewer, and returns how long it has waited.
func work(t *testing.T, l *Limiter, viewer string, took time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	end, err := l.Begin(t.Context(), viewer)
	if err != nil {
		t.Fatal(err)
	}
	end(took)
	return time.Since(begin).Round(time.Millisecond)
}

func TestWorkTakesItsShareOfTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, begin, took := New(8, 4, 0.2, time.Second), time.Now(), time.Duration(0)
		for range 1000 {
			end, err := l.Begin(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
			end(50 * time.Millisecond)
			took += 50 * time.Millisecond
		}
		all := time.Since(begin)
		if part := (took - time.Second).Seconds() / all.Seconds(); part > 0.201 || part < 0.19 {
			t.Errorf("after the burst, work of %s in %s is a part of %.3f", took, all, part)
		}
	})
}

func TestWorkBelowShareDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(8, 4, 0.2, time.Second)
		for range 1000 {
			if waited := work(t, l, "", 10*time.Millisecond); waited > 0 {
				t.Fatalf("it has waited for %s", waited)
			}
			time.Sleep(51 * time.Millisecond)
		}
	})
}

func TestViewerLeavesHalfOfTimeToOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(8, 4, 0.2, time.Second)
		work(t, l, "greedy", time.Second)
		if waited := work(t, l, "other", 2*time.Second); waited > 0 {
			t.Errorf("another viewer has waited for %s", waited)
		}
		// There is a debt of 2 s in the total, of 0.5 s and 1.5 s in the shares.
		if waited := work(t, l, "", 0); waited != 10*time.Second {
			t.Errorf("work without a viewer has waited for %s", waited)
		}
		if waited := work(t, l, "other", 0); waited != 5*time.Second {
			t.Errorf("the other viewer has waited for %s more", waited)
		}
		time.Sleep(time.Hour)
		work(t, l, "greedy", 9*time.Second)
		if waited := work(t, l, "greedy", 0); waited != 85*time.Second {
			t.Errorf("after long work, its viewer has waited for %s", waited)
		}
	})
}

func TestViewerInDebtTakesNoTotalSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(1, 1, 0.2, 10*time.Second)
		work(t, l, "greedy", 6*time.Second)
		waited := make(chan time.Duration)
		go func() { waited <- work(t, l, "greedy", 0) }()
		synctest.Wait()
		if waited := work(t, l, "other", 0); waited > 0 {
			t.Errorf("another viewer has waited for %s", waited)
		}
		if got := <-waited; got != 10*time.Second {
			t.Errorf("the viewer in debt has waited for %s", got)
		}
	})
}

func TestWorkBeyondDeadlineFailsImmediately(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(8, 4, 0.1, time.Second)
		work(t, l, "", 2*time.Second)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for range 100 { // a failure takes no slot
			if _, err := l.Begin(ctx, "viewer"); !errors.Is(err, ErrBusy) || time.Since(begin) > 0 {
				t.Fatalf("after %s: %v", time.Since(begin), err)
			}
		}
		if waited := work(t, l, "", 0); waited < 9*time.Second || waited > 11*time.Second {
			t.Errorf("it has waited for %s", waited)
		}
	})
}

func TestContextErrorIsNoOverload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(8, 4, 0.1, time.Second)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Millisecond))
		defer cancel()
		for name, c := range map[string]struct {
			ctx  context.Context
			want error
		}{
			"cancelled": {ended, context.Canceled}, "late": {late, context.DeadlineExceeded},
			"late, before its context knows": {silent{late}, context.DeadlineExceeded},
		} {
			if err := l.Spend(c.ctx, "", time.Second); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// silent is a context whose end is not known yet.
type silent struct{ context.Context }

func (silent) Done() <-chan struct{} { return nil }
func (silent) Err() error            { return nil }

func TestWorkIsChargedAsLongAsItTook(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, time.Second: 0, 1500 * time.Millisecond: 5 * time.Second, 4 * time.Second: 30 * time.Second,
		time.Hour: 90 * time.Second, // the process was stopped
	} {
		t.Run(took.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := New(8, 4, 0.1, time.Second)
				work(t, l, "", took)
				if waited := work(t, l, "", 0); (waited - want).Abs() > time.Millisecond {
					t.Errorf("after work of %s, the next piece waits for %s, want %s", took, waited, want)
				}
			})
		})
	}
}

// Work that is known to take long must not begin together with other work that the time does not suffice for.
func TestTimeIsReservedBeforeWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, begin := New(8, 4, 0.1, time.Second), time.Now()
		for i, want := range []time.Duration{0, 0, 5 * time.Second, 10 * time.Second} {
			if err := l.Spend(t.Context(), "", time.Second/2); err != nil || (time.Since(begin)-want).Abs() > time.Millisecond {
				t.Errorf("piece %d begins after %s, want %s: %v", i+1, time.Since(begin), want, err)
			}
		}
		if err := l.Spend(t.Context(), "", time.Hour); err != nil { // as much as the burst
			t.Error(err)
		}
	})
}

func TestWorkWithoutTimeLimitWaitsForSlotOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(1, 1, 0, time.Second)
		for range 10 {
			if waited := work(t, l, "viewer", time.Hour); waited > 0 {
				t.Fatalf("it has waited for %s", waited)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Spend(ended, "viewer", time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of its context: %v", err)
		}
	})
}

func TestViewerLeavesHalfOfSlotsToOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(4, 2, 0.2, time.Hour)
		// begins has a viewer wait for a slot, and returns the function that ends its work, nil while it waits.
		begins := func(viewer string) (end *func(time.Duration)) {
			end = new(func(time.Duration))
			go func() {
				if done, err := l.Begin(t.Context(), viewer); err == nil {
					*end = done
				}
			}()
			synctest.Wait()
			return end
		}
		var greedy []*func(time.Duration)
		for range 4 {
			greedy = append(greedy, begins("greedy"))
		}
		if *greedy[1] == nil || *greedy[2] != nil {
			t.Error("one viewer does not have half of the slots")
		}
		first, second := begins("first"), begins("second")
		if *first == nil || *second == nil {
			t.Fatal("other viewers wait although half of the slots are free")
		}
		third := begins("third")
		(*greedy[0])(0)
		synctest.Wait()
		if *third == nil || *greedy[2] != nil {
			t.Error("the slot did not go to the viewer that has none")
		}
		for _, end := range []*func(time.Duration){greedy[1], first, second, third} {
			(*end)(0)
		}
		synctest.Wait()
		if *greedy[2] == nil || *greedy[3] == nil {
			t.Error("a viewer does not have its slots once they are free")
		}
	})
}

func TestWaitForSlotEndsWithContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(1, 1, 0.1, time.Second)
		work(t, l, "b", 2*time.Second) // with a debt, its share is kept
		end, err := l.Begin(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, viewer := range []string{"a", "b", ""} {
			if _, err := l.Begin(ctx, viewer); !errors.Is(err, context.Canceled) {
				t.Errorf("the wait of %q ended with %v", viewer, err)
			}
		}
		waits, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := l.Begin(waits, "b"); !errors.Is(err, context.Canceled) { // it has its own slot by then
			t.Errorf("the wait ended with %v", err)
		}
		end(0)
		for _, viewer := range []string{"a", "b", ""} {
			work(t, l, viewer, 0)
		}
	})
}

func TestIdlePaidSharesAreEvicted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(8, 4, 0.2, time.Second)
		work(t, l, "busy", time.Second)
		busy := l.shares["busy"]
		end, err := l.Begin(t.Context(), "working")
		if err != nil {
			t.Fatal(err)
		}
		working := l.shares["working"]
		for i := range 2 * maxShares {
			work(t, l, fmt.Sprint("viewer ", i), time.Microsecond)
			time.Sleep(100 * time.Microsecond)
		}
		if len(l.shares) > maxShares+1 {
			t.Errorf("%d shares are kept", len(l.shares))
		}
		if l.shares["busy"] != busy || l.shares["working"] != working {
			t.Error("the share of a viewer with work or with a debt is evicted")
		}
		end(0)
		unbounded := New(8, 4, 0, 0)
		if work(t, unbounded, "viewer", 0); len(unbounded.shares) > 0 {
			t.Error("a share that is not used is kept")
		}
	})
}

func TestPaidSharesAreEvictedAtTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := New(8, 4, 0.2, time.Second)
		for i := range maxShares {
			shares, leave := l.join(fmt.Sprint(i))
			charge(shares[:1], time.Second)
			leave()
		}
		time.Sleep(time.Hour)
		if l.join("another"); len(l.shares) != 1 {
			t.Errorf("%d viewers have a share, want 1", len(l.shares))
		}
	})
}
