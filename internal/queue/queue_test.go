package queue_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/internal/queue"
)

func TestPriorities(t *testing.T) {
	for name, test := range map[string]struct{ first, second int }{
		"a hold before a release":                              {queue.Priority(queue.Hold, 1e6), queue.Priority(queue.Release, 0)},
		"a release before a condition":                         {queue.Priority(queue.Release, 1e6), queue.Priority(queue.Tell, 0)},
		"a condition before a look":                            {queue.Priority(queue.Tell, 1e6), queue.Priority(queue.Resync, 0)},
		"the first of a gate before the second of another":     {queue.Priority(queue.Hold, 0), queue.Priority(queue.Hold, 1)},
		"the first thousand before what is beyond 1,024":       {queue.Priority(queue.Hold, 999), queue.Priority(queue.Hold, 1024)},
		"the last of many before the next class":               {queue.Priority(queue.Hold, 1<<62), queue.Priority(queue.Release, 0)},
		"the lowest class is not below what nobody has set":    {queue.Priority(queue.Resync, 1e6) + 1, 0},
		"a number that makes no sense is as good as the first": {queue.Priority(queue.Hold, -1), queue.Priority(queue.Hold, 1)},
	} {
		if test.first <= test.second {
			t.Errorf("%s: %d, %d", name, test.first, test.second)
		}
	}
}

func TestTheClassIsInThePriority(t *testing.T) {
	for _, class := range []queue.Class{queue.Resync, queue.Tell, queue.Release, queue.Hold} {
		for _, n := range []int{0, 1, 999, 1 << 40} {
			if got := queue.ClassOf(queue.Priority(class, n)); got != class {
				t.Errorf("%d of class %d is of class %d", n, class, got)
			}
		}
	}
}

func TestThereAreFewPriorities(t *testing.T) {
	all := map[int]bool{}
	for n := range 100_000 {
		all[queue.Priority(queue.Hold, n)] = true
	}
	if len(all) > 20 {
		t.Errorf("%d for a hundred thousand targets", len(all))
	}
}
