package queue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/workqueue"

	"github.com/fluxcd/gating-controller/internal/queue"
)

var _ workqueue.Queue[string] = queue.New[string]()

// targets is the queue of a controller.
type targets struct {
	workqueue.TypedInterface[string]
	order *queue.Queue[string]
}

func newTargets(t *testing.T) targets {
	t.Helper()
	order := queue.New[string]()
	q := targets{workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: order}), order}
	t.Cleanup(q.ShutDown)
	return q
}

// wake adds n targets of a Gate.
func (q targets) wake(gate string, class queue.Class, n int) {
	for i := range n {
		name := fmt.Sprintf("%s%d", gate, i)
		q.order.Prioritize(name, queue.Priority{Class: class, Place: i})
		q.Add(name)
	}
}

// next takes n targets.
func (q targets) next(n int) string {
	var all []string
	for range n {
		name, _ := q.Get()
		all = append(all, name)
		q.Done(name)
	}
	return strings.Join(all, " ")
}

func TestTargetOrder(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(targets)
		want string
	}{
		"what is urgent first": {func(q targets) {
			q.Add("look")
			q.wake("tell", queue.Report, 1)
			q.wake("release", queue.Release, 1)
			q.wake("change", queue.Change, 1)
			q.wake("hold", queue.Hold, 1)
		}, "hold0 change0 release0 tell0 look"},
		"those of one gate in their order": {func(q targets) { q.wake("a", queue.Hold, 3) }, "a0 a1 a2"},
		"a share for each gate": {func(q targets) {
			q.wake("a", queue.Hold, 4)
			q.wake("b", queue.Hold, 2)
		}, "a0 b0 a1 b1 a2 a3"},
		"a hold does not wait for releases": {func(q targets) {
			q.wake("a", queue.Release, 3)
			q.wake("b", queue.Hold, 2)
		}, "b0 b1 a0 a1 a2"},
		"a gate that closes while it releases": {func(q targets) {
			q.wake("a", queue.Release, 3)
			q.wake("b", queue.Release, 1)
			q.wake("a", queue.Hold, 2)
		}, "a0 a1 b0 a2"},
		"what is less urgent changes nothing": {func(q targets) {
			q.wake("a", queue.Hold, 2)
			q.wake("a", queue.Report, 2)
			q.wake("b", queue.Release, 1)
		}, "a0 a1 b0"},
		"an item that is urged before it comes": {func(q targets) {
			q.order.Prioritize("b", queue.Priority{Class: queue.Hold})
			q.Add("a")
			q.Add("b")
		}, "b a"},
		"an item that comes again is not urgent any more": {func(q targets) {
			q.wake("a", queue.Hold, 1)
			q.next(1)
			q.Add("look")
			q.Add("a0")
		}, "look a0"},
		"an item that is urged while it is looked at": {func(q targets) {
			q.Add("a")
			name, _ := q.Get()
			q.order.Prioritize("a", queue.Priority{Class: queue.Hold})
			q.Add("a")
			q.Add("b")
			q.Done(name)
		}, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newTargets(t)
			test.do(q)
			if got := q.next(q.Len()); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestItemOrderMatchesModel compares the queue with a sorted list.
func TestItemOrderMatchesModel(t *testing.T) {
	type waiting struct {
		name    string
		urgency queue.Priority
	}
	random := rand.New(rand.NewPCG(1, 2))
	q := queue.New[string]()
	var model []waiting
	left := 0
	for range 20_000 {
		name := fmt.Sprint(random.IntN(40))
		at := slices.IndexFunc(model, func(w waiting) bool { return w.name == name })
		switch random.IntN(3) {
		case 0:
			if at < 0 {
				q.Push(name)
				model = append(model, waiting{name: name})
			}
		case 1:
			if at < 0 {
				continue
			}
			u := queue.Priority{Class: queue.Class(random.IntN(4)), Place: random.IntN(5)}
			q.Prioritize(name, u)
			if was := model[at].urgency; u.Class > was.Class || u.Class == was.Class && u.Place < was.Place {
				model = append(slices.Delete(model, at, at+1), waiting{name, u})
			}
		default:
			if len(model) == 0 {
				continue
			}
			slices.SortStableFunc(model, func(a, b waiting) int {
				if a.urgency.Class != b.urgency.Class {
					return int(b.urgency.Class - a.urgency.Class)
				}
				return a.urgency.Place - b.urgency.Place
			})
			if got := q.Pop(); got != model[0].name {
				t.Fatalf("got %s, want %s of %v", got, model[0].name, model)
			}
			model = model[1:]
			left++
		}
		if q.Len() != len(model) {
			t.Fatalf("%d wait, want %d", q.Len(), len(model))
		}
	}
	if left < 1000 {
		t.Errorf("only %d have left", left)
	}
}

// namespaceOf returns the group of an item of a fair queue.
func namespaceOf(item string) string {
	namespace, _, _ := strings.Cut(item, "/")
	return namespace
}

// drained returns all items of a queue in the order in which they leave.
func drained(q *queue.Queue[string]) (all []string) {
	for q.Len() > 0 {
		all = append(all, q.Pop())
	}
	return all
}

func TestGroupsTakeTurns(t *testing.T) {
	q := queue.NewFair(namespaceOf)
	for i := range 12 {
		q.Push(fmt.Sprintf("busy/%02d", i))
	}
	q.Push("calm/1")
	q.Push("calm/2")
	if got, want := drained(q)[:5], []string{"busy/00", "calm/1", "busy/01", "calm/2", "busy/02"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestBusyGroupDelaysOthersByOneItem has one group add two items for each that leaves.
func TestBusyGroupDelaysOthersByOneItem(t *testing.T) {
	q, n := queue.NewFair(namespaceOf), 0
	more := func() {
		for range 2 {
			q.Push(fmt.Sprintf("busy/%d", n))
			n++
		}
	}
	more()
	for range 50 {
		q.Pop()
		more()
	}
	for round := range 3 {
		q.Push("calm/1")
		first, second := q.Pop(), q.Pop()
		if first != "calm/1" && second != "calm/1" {
			t.Errorf("round %d: %s and %s come first", round, first, second)
		}
		more()
	}
}

func TestClosesComeFirstAndResyncsLast(t *testing.T) {
	q := queue.NewFair(namespaceOf)
	q.Push("calm/interval")
	for i := range 3 {
		q.Prioritize(fmt.Sprintf("busy/%d", i), queue.Priority{Class: queue.Change})
		q.Push(fmt.Sprintf("busy/%d", i))
	}
	q.Push("busy/close")
	q.Prioritize("busy/close", queue.Priority{Class: queue.Hold})
	if got, want := drained(q), []string{"busy/close", "busy/0", "busy/1", "busy/2", "calm/interval"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestUrgentItemsDelayNoOtherGroup has one group with eight urgent items, each of which is added again after it has left.
func TestUrgentItemsDelayNoOtherGroup(t *testing.T) {
	for _, busy := range []int{1, 8} {
		q := queue.NewFair(namespaceOf)
		add := func(i int) {
			name := fmt.Sprintf("busy/%d", i%busy)
			q.Prioritize(name, queue.Priority{Class: queue.Hold})
			q.Push(name)
		}
		for i := range busy {
			add(i)
		}
		for round := range 3 {
			q.Prioritize("calm/freeze", queue.Priority{Class: queue.Change})
			q.Push("calm/freeze")
			left := []string{q.Pop(), q.Pop()}
			if !slices.Contains(left, "calm/freeze") {
				t.Fatalf("%d items, round %d: %v leave first", busy, round, left)
			}
			for _, name := range left {
				if i := strings.TrimPrefix(name, "busy/"); i != name {
					q.Prioritize(name, queue.Priority{Class: queue.Hold})
					q.Push(name)
				}
			}
		}
	}
}

// TestReturningGroupDoesNotStarveOthers has one group add an item whenever its last one leaves.
func TestReturningGroupDoesNotStarveOthers(t *testing.T) {
	q := queue.NewFair(namespaceOf)
	for i := range 10 {
		q.Push(fmt.Sprintf("many/%d", i))
	}
	served := 0
	q.Push("one/again")
	for range 20 {
		if item := q.Pop(); item == "one/again" {
			q.Push(item)
		} else {
			served++
		}
	}
	if served < 9 {
		t.Errorf("the other group had %d of 20 turns", served)
	}
}
