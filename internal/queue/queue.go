// Package queue says in which order targets are written: what is urgent first, and among what is
// equally urgent a share for each Gate.
package queue

import "math/bits"

// Class is how urgent it is to look at a target.
type Class int

const (
	// Resync looks whether all is as it should be.
	Resync Class = iota
	// Tell writes what became of a target into its conditions.
	Tell
	// Release lets a target go.
	Release
	// Hold holds a target.
	Hold
)

// ranks is how many ranks each class has.
const ranks = 32

// Priority returns that of one of the targets that a Gate wakes together, the nth, from zero, for
// a priority queue in which higher values come first. The rank is the logarithm of n: the first of
// a Gate comes before the second of any other, the first thousand before what lies beyond the
// first two thousand of the others. There are few ranks, because each is a value of a label in the
// metrics of the queue.
func Priority(class Class, n int) int {
	return int(class)*ranks + ranks - 1 - min(bits.Len(uint(max(n, 0))), ranks-1)
}

// ClassOf returns the class of a priority.
func ClassOf(priority int) Class {
	return Class(priority / ranks)
}
