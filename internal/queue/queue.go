// Package queue orders reconciliations by priority, and fairly among Gates and namespaces, so that none of them waits for
// all the work of another one.
package queue

import (
	"cmp"
	"container/heap"
	"sync"
)

// Class is the class of a reconciliation.
type Class int

const (
	// Resync checks that nothing has changed.
	Resync Class = iota
	// Report writes the conditions of a target.
	Report
	// Release releases a target.
	Release
	// Change reconciles a target after another client has changed it.
	Change
	// Hold holds a target because its Gate has closed.
	Hold
)

// Priority is the priority of an item.
type Priority struct {
	Class Class
	// Place is the position of an item among those that a Gate enqueues together, from zero. Within a class, the first items of all Gates come
	// first, then the second ones, so that no Gate waits for all the work of another one.
	Place int
}

// compare returns a negative number if u comes before other.
func (u Priority) compare(other Priority) int {
	return cmp.Or(cmp.Compare(other.Class, u.Class), cmp.Compare(u.Place, other.Place))
}

// Queue holds items ordered by priority. Items of equal priority leave in the order in which they were added. Queue implements the
// interface of the same name in k8s.io/client-go/util/workqueue, which never adds an item that is already waiting.
type Queue[T comparable] struct {
	mu sync.Mutex
	// priorities holds the priorities of items that wait or will be added.
	priorities map[T]Priority
	// waiting holds the enqueued items that no worker has taken yet.
	waiting map[T]*item[T]
	came    uint64
	// group returns the group of an item. Groups take turns. groups holds the groups with waiting items. turn is the turn of the last item
	// that left. Index 0 is for all classes except Resync, and index 1 is for Resync.
	group  func(T) string
	groups map[string]*group[T]
	turn   [2]int
}

// New returns an empty queue with a single group.
func New[T comparable]() *Queue[T] { return NewFair(func(T) string { return "" }) }

// NewFair returns an empty queue in which groups take turns. A group waits for at most one item of each other group before its own next
// item, however many items they have. The item with the highest priority of a group leaves first. Items of class Resync come after all
// others.
func NewFair[T comparable](of func(T) string) *Queue[T] {
	return &Queue[T]{priorities: map[T]Priority{}, waiting: map[T]*item[T]{}, group: of, groups: map[string]*group[T]{}}
}

// group holds the waiting items of a group in a heap.
type group[T comparable] struct {
	order order[T]
	// turn is the next turn of the group, with the same indices as Queue.turn.
	turn [2]int
}

// rank returns 1 for an item of class Resync, and 0 for others.
func (i *item[T]) rank() int {
	if i.priority.Class == Resync {
		return 1
	}
	return 0
}

// before returns whether group a has its turn before group b. The caller must hold mu.
func (q *Queue[T]) before(a, b *group[T]) bool {
	first, second := a.order[0], b.order[0]
	rank := first.rank()
	return cmp.Or(cmp.Compare(rank, second.rank()), cmp.Compare(max(a.turn[rank], q.turn[rank]), max(b.turn[rank], q.turn[rank])), cmp.Compare(first.came, second.came)) < 0
}

// Prioritize raises the priority of an item until it leaves, and never lowers it. It applies at once if the item waits, and otherwise when
// it is added. Items without a priority come first in class Resync.
func (q *Queue[T]) Prioritize(item T, priority Priority) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if priority.compare(q.priorities[item]) < 0 {
		q.priorities[item] = priority
		q.move(item)
	}
}

// Touch implements workqueue.Queue. Prioritize already moves a waiting item.
func (q *Queue[T]) Touch(T) {}

// Push implements workqueue.Queue.
func (q *Queue[T]) Push(key T) {
	name := q.group(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.came++
	i := &item[T]{key: key, group: name, priority: q.priorities[key], came: q.came}
	q.waiting[key] = i
	if q.groups[name] == nil {
		// A new group gets its turn after the groups that are already waiting.
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

// move updates the position of a waiting item. The caller must hold mu.
func (q *Queue[T]) move(key T) {
	if i := q.waiting[key]; i != nil {
		q.came++
		i.priority, i.came = q.priorities[key], q.came
		heap.Fix(&q.groups[i.group].order, i.index)
	}
}

// item is a waiting item. came orders items of equal priority, and index is its index in the heap.
type item[T comparable] struct {
	key      T
	group    string
	priority Priority
	came     uint64
	index    int
}

// order is a heap of items.
type order[T comparable] []*item[T]

// Len implements heap.Interface.
func (o order[T]) Len() int { return len(o) }

// Less implements heap.Interface.
func (o order[T]) Less(i, j int) bool {
	return cmp.Or(o[i].priority.compare(o[j].priority), cmp.Compare(o[i].came, o[j].came)) < 0
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
