// Package queue orders targets and Gates: the urgent ones come first. Among
// equally urgent ones, each Gate or each namespace gets its share.
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
	// Tell writes what became of a target into its conditions.
	Tell
	// Release lets a target go.
	Release
	// Change looks at a target that somebody has changed.
	Change
	// Hold holds a target because its Gate has closed.
	Hold
)

// Urgency of an item.
type Urgency struct {
	Class Class
	// Place of an item among those that a Gate wakes together, from zero on. Within a
	// class the first of each Gate come first, then the second: no Gate waits for all the
	// work of another one.
	Place int
}

// compare returns which of two is more urgent, less than zero for the first.
func (u Urgency) compare(other Urgency) int {
	return cmp.Or(cmp.Compare(other.Class, u.Class), cmp.Compare(u.Place, other.Place))
}

// Queue has items in the order of their urgency. Equally urgent ones leave in the order in
// which they came. It is a Queue of k8s.io/client-go/util/workqueue, which has each item
// once.
type Queue[T comparable] struct {
	mu sync.Mutex
	// urgent has the urgency of items that wait or are still to come.
	urgent map[T]Urgency
	// waiting has the items that wait.
	waiting map[T]*item[T]
	order   order[T]
	came    uint64
	// group says which items share a turn, nil for a queue whose items have places of their own. turns has the turns of each class.
	group func(T) string
	turns map[Class]*turns
}

// New returns a queue without items.
func New[T comparable]() *Queue[T] {
	return &Queue[T]{urgent: map[T]Urgency{}, waiting: map[T]*item[T]{}}
}

// NewFair returns a queue without items, in which groups take turns: however many items of a class one group has, each other group
// waits for one of them at most before its own next item. Places are not used.
func NewFair[T comparable](group func(T) string) *Queue[T] {
	q := New[T]()
	q.group, q.turns = group, map[Class]*turns{}
	return q
}

// turns are those of the groups of a class. An item has a turn, and leaves before those with a later one.
type turns struct {
	// now is the turn of the item that left last, and last that of the latest item of each group, unless it is over.
	now  int
	last map[string]int
}

// place returns the urgency of an item with its turn in a fair queue. It is called with mu held.
func (q *Queue[T]) place(key T, urgency Urgency) Urgency {
	if q.group == nil {
		return urgency
	}
	of := q.turns[urgency.Class]
	if of == nil {
		of = &turns{last: map[string]int{}}
		q.turns[urgency.Class] = of
	}
	group := q.group(key)
	of.last[group] = max(of.now, of.last[group]) + 1
	urgency.Place = of.last[group]
	return urgency
}

// left records that an item has left a fair queue. It is called with mu held.
func (q *Queue[T]) left(i *item[T]) {
	if q.group == nil {
		return
	}
	of := q.turns[i.urgency.Class]
	of.now = max(of.now, i.urgency.Place)
	if group := q.group(i.key); of.last[group] <= of.now {
		delete(of.last, group)
	}
}

// Urge makes an item at least so urgent until it leaves. That begins at once if it waits,
// otherwise when it is next added. An item that nobody urges is the first of class Resync.
func (q *Queue[T]) Urge(item T, urgency Urgency) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if urgency.compare(q.urgent[item]) < 0 {
		q.urgent[item] = urgency
		q.move(item)
	}
}

// Touch implements workqueue.Queue. Urge already moves an item that waits.
func (q *Queue[T]) Touch(T) {}

// Push implements workqueue.Queue.
func (q *Queue[T]) Push(key T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.came++
	i := &item[T]{key: key, urgency: q.place(key, q.urgent[key]), came: q.came}
	q.waiting[key] = i
	heap.Push(&q.order, i)
}

// Len implements workqueue.Queue.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order)
}

// Pop implements workqueue.Queue.
func (q *Queue[T]) Pop() T {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, _ := heap.Pop(&q.order).(*item[T])
	delete(q.waiting, i.key)
	delete(q.urgent, i.key)
	q.left(i)
	return i.key
}

// move puts a waiting item where it belongs. It is called with mu held.
func (q *Queue[T]) move(key T) {
	if i := q.waiting[key]; i != nil {
		q.came++
		i.urgency, i.came = q.place(key, q.urgent[key]), q.came
		heap.Fix(&q.order, i.index)
	}
}

// item waits in a queue.
type item[T comparable] struct {
	key     T
	urgency Urgency
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
