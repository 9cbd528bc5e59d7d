package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWorkTakesItsShareOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, begin, took := New(0.2, time.Second), time.Now(), time.Duration(0)
		for range 1000 {
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
			b.Took(50 * time.Millisecond)
			took += 50 * time.Millisecond
		}
		all := time.Since(begin)
		if share := (took - time.Second).Seconds() / all.Seconds(); share > 0.201 || share < 0.19 {
			t.Errorf("after the burst, work of %s in %s is a share of %.3f", took, all, share)
		}
	})
}

func TestAHalfCountsInTheWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whole := New(0.2, time.Second)
		half, other := whole.Half(), whole.Half()
		if !half.Unused() {
			t.Error("a new budget is used")
		}
		wait := func(b *Budget) time.Duration {
			begin := time.Now()
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Since(begin).Round(time.Millisecond)
		}
		half.Took(time.Second)
		if waited := wait(other); waited > 0 || half.Unused() {
			t.Errorf("the other half has waited for %s", waited)
		}
		other.Took(2 * time.Second) // a debt of 2 s in the whole, of 0.5 s and 1.5 s in the halves
		if waited := wait(whole); waited != 10*time.Second {
			t.Errorf("the whole has waited for %s", waited)
		}
		if waited := wait(other); waited != 5*time.Second {
			t.Errorf("the other half has waited for %s more", waited)
		}
		time.Sleep(time.Hour)
		half.Took(9 * time.Second)
		if waited := wait(half); waited != 85*time.Second {
			t.Errorf("after long work, the half has waited for %s", waited)
		}
	})
}

func TestWorkBelowItsShareDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, begin := New(0.2, time.Second), time.Now()
		for range 1000 {
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.Took(10 * time.Millisecond)
			time.Sleep(51 * time.Millisecond)
		}
		if waited := time.Since(begin) - 51*time.Second; waited > 0 {
			t.Errorf("it has waited for %s", waited)
		}
	})
}

func TestWhoWouldWaitTooLongIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(0.1, time.Second)
		b.Took(2 * time.Second)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := b.Wait(ctx); err == nil || time.Since(begin) > 0 {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		if err := b.Wait(t.Context()); err != nil || time.Since(begin) < 9*time.Second || time.Since(begin) > 11*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

func TestTheEndOfAContextIsNoLackOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(0.1, time.Second)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Wait(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Millisecond))
		defer cancel()
		if err := b.Wait(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("late: %v", err)
		}
		if err := b.Wait(silent{late}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("late, before its context knows: %v", err)
		}
	})
}

// silent is a context whose end is not known yet.
type silent struct{ context.Context }

func (silent) Done() <-chan struct{} { return nil }
func (silent) Err() error            { return nil }

func TestOnePieceOfWorkCountsAsLongAsItTook(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, time.Second: 0, 1500 * time.Millisecond: 5 * time.Second, 4 * time.Second: 30 * time.Second,
		time.Hour: 90 * time.Second, // the process was stopped
	} {
		synctest.Test(t, func(t *testing.T) {
			b, begin := New(0.1, time.Second), time.Now()
			b.Took(took)
			if err := b.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); (waited - want).Abs() > time.Millisecond {
				t.Errorf("after work of %s, the next piece waits for %s, want %s", took, waited, want)
			}
		})
	}
}

func TestWorkWithoutABudgetNeverWaits(t *testing.T) {
	t.Parallel()
	var b *Budget
	b.Do(func() {})
	b.Took(time.Hour)
	if err := b.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b.Wait(ctx) == nil {
		t.Error("it goes on although its context has ended")
	}
}

func TestWorkThatIsDoneCountsAlsoIfItPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(0.1, time.Second)
		func() {
			defer func() { _ = recover() }()
			b.Do(func() {
				time.Sleep(2 * time.Second)
				panic("broken")
			})
		}()
		begin := time.Now()
		if err := b.Wait(t.Context()); err != nil || time.Since(begin) < 9*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}
