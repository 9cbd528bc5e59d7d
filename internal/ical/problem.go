package ical

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds the number of errors, and the number of warnings, that are returned for a text.
const maxProblems = 20

// Error is an error in an iCalendar text.
type Error struct {
	// Line counts from 1.
	Line int
	// Property is the property or component with the error, such as DTSTART.
	Property string
	// Cause is the rest of the sentence that begins with Property.
	Cause string
}

// Error returns a sentence without a full stop.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s %s", e.Line, e.Property, e.Cause) }

// Errors are the errors of a text, sorted by line: at least one, and at most 20.
type Errors []*Error

// Error returns all errors, separated by semicolons.
func (e Errors) Error() string {
	all := make([]string, len(e))
	for i := range e {
		all[i] = e[i].Error()
	}
	return strings.Join(all, "; ")
}

// Unwrap returns the single errors, for the package errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i := range e {
		all[i] = e[i]
	}
	return all
}

// add adds an Error or Errors. It ignores other errors, nil, and everything once there are maxProblems.
func (e *Errors) add(err error) {
	if len(*e) >= maxProblems {
		return
	}
	if several := (Errors)(nil); errors.As(err, &several) {
		*e = append(*e, several...)
	} else if one := (*Error)(nil); errors.As(err, &one) {
		*e = append(*e, one)
	}
}

// first returns the errors sorted by line, each once, and at most maxProblems.
func (e Errors) first() Errors {
	sorted := slices.Clone(e)
	slices.SortStableFunc(sorted, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Property, b.Property))
	})
	sorted = slices.CompactFunc(sorted, func(a, b *Error) bool { return *a == *b })
	return sorted[:min(len(sorted), maxProblems)]
}

// err returns the first errors, see first, nil if there are none.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e.first()
}
