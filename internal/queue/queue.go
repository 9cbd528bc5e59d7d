// Package queue orders targets and Gates. Urgent targets come first, and each Gate gets its share of equally urgent ones. Namespaces take
// turns with their Gates, and the urgent Gates of a namespace come first.
package queue

import (
	"cmp"
	"container/heap"
	"sync"
)

// Class is how urgent it is to look at a target.
type Class int

const (
	// Resync checks that everything is as it should be.
	Resync Class = iota
	// Report writes what became of a target into its conditions.
	Report
	// Release lets a target go.
	Release
	// Change looks at a target that somebody has changed.
	Change
	// Hold holds a target because its Gate has closed.
	Hold
)

// Priority of an item.
type Priority struct {
	Class Class
	// Place of an item among those that a Gate wakes together, from zero on. Within a
	// class the first of each Gate come first, then the second: no Gate waits for all the
	// work of another one.
	Place int
}

// compare returns which of two is more urgent, less than zero for the first.
func (u Priority) compare(other Priority) int {
	return cmp.Or(cmp.Compare(other.Class, u.Class), cmp.Compare(u.Place, other.Place))
}

// Queue has items in the order of their urgency. Equally urgent ones leave in the order in
// which they came. It is a Queue of k8s.io/client-go/util/workqueue, which has each item
// once.
type Queue[T comparable] struct {
	mu sync.Mutex
	// priorities has the urgency of items that wait or are still to come.
	priorities map[T]Priority
	// waiting has the items that wait.
	waiting map[T]*item[T]
	came    uint64
	// group returns which items share turns. groups has the groups with items that wait, and turn that of the item that left last, of class
	// Resync and of all others.
	group  func(T) string
	groups map[string]*group[T]
	turn   [2]int
}

// New returns a queue without items.
func New[T comparable]() *Queue[T] { return NewFair(func(T) string { return "" }) }

// NewFair returns a queue without items, in which groups take turns: however many items one group has, each other group waits for one of them
// at most before its own next item. The most urgent item of a group has its turn first. Items of class Resync come after all others.
func NewFair[T comparable](of func(T) string) *Queue[T] {
	return &Queue[T]{priorities: map[T]Priority{}, waiting: map[T]*item[T]{}, group: of, groups: map[string]*group[T]{}}
}

// group has the items of a group that wait, the most urgent one first.
type group[T comparable] struct {
	order order[T]
	// turn is the next one of the group, of class Resync and of all others.
	turn [2]int
}

// rank returns 1 for an item of class Resync, and 0 for others.
func (i *item[T]) rank() int {
	if i.urgency.Class == Resync {
		return 1
	}
	return 0
}

// before returns whether a group has its turn before another one. It is called with mu held.
func (q *Queue[T]) before(a, b *group[T]) bool {
	first, second := a.order[0], b.order[0]
	rank := first.rank()
	return cmp.Or(cmp.Compare(rank, second.rank()), cmp.Compare(max(a.turn[rank], q.turn[rank]), max(b.turn[rank], q.turn[rank])), cmp.Compare(first.came, second.came)) < 0
}

// Prioritize makes an item at least so urgent until it leaves. That begins at once if it waits,
// otherwise when it is next added. An item that nobody urges is the first of class Resync.
func (q *Queue[T]) Prioritize(item T, urgency Priority) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if urgency.compare(q.priorities[item]) < 0 {
		q.priorities[item] = urgency
		q.move(item)
	}
}

// Touch implements workqueue.Queue. Urge already moves an item that waits.
func (q *Queue[T]) Touch(T) {}

// Push implements workqueue.Queue.
func (q *Queue[T]) Push(key T) {
	name := q.group(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.came++
	i := &item[T]{key: key, group: name, urgency: q.priorities[key], came: q.came}
	q.waiting[key] = i
	if q.groups[name] == nil {
		// Its turn comes after that of the groups that have waited for one.
		q.groups[name] = &group[T]{turn: [2]int{q.turn[0] + 1, q.turn[1] + 1}}
	}
	heap.Push(&q.groups[name].order, i)
}

// Len implements workqueue.Queue.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Pop implements workqueue.Queue.
func (q *Queue[T]) Pop() T {
	q.mu.Lock()
	defer q.mu.Unlock()
	var next *group[T]
	for _, g := range q.groups {
		if next == nil || q.before(g, next) {
			next = g
		}
	}
	i, _ := heap.Pop(&next.order).(*item[T])
	rank := i.rank()
	q.turn[rank] = max(next.turn[rank], q.turn[rank])
	if next.turn[rank] = q.turn[rank] + 1; len(next.order) == 0 {
		delete(q.groups, i.group)
	}
	delete(q.waiting, i.key)
	delete(q.priorities, i.key)
	return i.key
}

// move puts a waiting item where it belongs. It is called with mu held.
func (q *Queue[T]) move(key T) {
	if i := q.waiting[key]; i != nil {
		q.came++
		i.urgency, i.came = q.priorities[key], q.came
		heap.Fix(&q.groups[i.group].order, i.index)
	}
}

// item waits in a queue.
type item[T comparable] struct {
	key     T
	group   string
	urgency Priority
	came    uint64
	index   int
}

// order is a heap of items.
type order[T comparable] []*item[T]

// Len implements heap.Interface.
func (o order[T]) Len() int { return len(o) }

// Less implements heap.Interface.
func (o order[T]) Less(i, j int) bool {
	return cmp.Or(o[i].urgency.compare(o[j].urgency), cmp.Compare(o[i].came, o[j].came)) < 0
}

// Swap implements heap.Interface.
func (o order[T]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].index, o[j].index = i, j
}

// Push implements heap.Interface.
func (o *order[T]) Push(x any) {
	i, _ := x.(*item[T])
	i.index = len(*o)
	*o = append(*o, i)
}

// Pop implements heap.Interface.
func (o *order[T]) Pop() any {
	last := len(*o) - 1
	i := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return i
}
