package ui

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// enters has a viewer wait for a slot, and returns the function that releases it, nil while it waits.
func enters(ctx context.Context, s *slots, viewer string) (done *func()) {
	done = new(func())
	go func() {
		if release, err := s.enter(ctx, viewer); err == nil {
			*done = release
		}
	}()
	return done
}

func TestAViewerLeavesHalfOfTheSlotsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(4, false)
		var greedy []*func()
		for range 4 {
			greedy = append(greedy, enters(t.Context(), s, "greedy"))
			synctest.Wait()
		}
		if *greedy[1] == nil || *greedy[2] != nil {
			t.Error("one viewer does not have half of the slots")
		}
		first := enters(t.Context(), s, "first")
		synctest.Wait()
		second := enters(t.Context(), s, "second")
		synctest.Wait()
		if *first == nil || *second == nil {
			t.Fatal("other viewers wait although half of the slots are free")
		}
		third := enters(t.Context(), s, "third")
		synctest.Wait()
		(*greedy[0])()
		synctest.Wait()
		if *third == nil || *greedy[2] != nil {
			t.Error("the slot did not go to the viewer that has none")
		}
		for _, done := range []*func(){greedy[1], first, second, third} {
			(*done)()
		}
		synctest.Wait()
		if *greedy[2] == nil || *greedy[3] == nil || s.free != 2 || len(s.waiting) != 0 {
			t.Errorf("in the end %d slots are free, and %d wait", s.free, len(s.waiting))
		}
	})
}

func TestAWaitForASlotEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, false)
		done, err := s.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.enter(ctx, "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
		done()
		if s.free != 1 || len(s.waiting) != 0 || len(s.taken) != 0 {
			t.Errorf("%d slots are free, %d wait, taken %v", s.free, len(s.waiting), s.taken)
		}
	})
}

func TestOnePersonAloneHasAllSlots(t *testing.T) {
	t.Parallel()
	s := newSlots(4, true)
	for range 4 {
		if _, err := s.enter(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
}
