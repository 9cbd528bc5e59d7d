package webauth

import (
	"sync"
	"testing"
	"time"
)

// Two requests of a viewer at the same time must not get a limiter each.
func TestConcurrentRequestsShareAValue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for range 200 {
		m, begin := newMemory[*int](8), make(chan struct{})
		values := make([]*int, 8)
		var group sync.WaitGroup
		for i := range values {
			group.Go(func() {
				<-begin
				values[i] = m.touch("viewer", new(int), now)
			})
		}
		close(begin)
		group.Wait()
		for _, value := range values {
			if value != values[0] {
				t.Fatal("two requests have different values")
			}
		}
	}
}
