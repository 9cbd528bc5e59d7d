package gate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Snapshot holds all inputs of a decision on a Gate. It is not safe for concurrent use.
type Snapshot struct {
	// Gate has the accepted requests and the state of its dependencies in its status. It is nil for exceptions whose Gate does not exist.
	Gate *v1alpha1.Gate
	// Calendars holds the calendars of the Gate's periods. A missing calendar counts as broken.
	Calendars timetable.Calendars
	// Exceptions may include exceptions of other Gates, which are ignored.
	Exceptions []*v1alpha1.GateException

	compiled *compilation
}

// NewSnapshot returns a snapshot of a Gate. The Gate is nil for exceptions whose Gate does not exist.
func NewSnapshot(g *v1alpha1.Gate, calendars timetable.Calendars, exceptions ...*v1alpha1.GateException) *Snapshot {
	return &Snapshot{Gate: g, Calendars: calendars, Exceptions: exceptions}
}

// compilation is a compiled spec with its calendars and exceptions.
type compilation struct {
	*timetable.Timetable
	// errs lists the errors of the whole spec.
	errs field.ErrorList
}

// WithGate returns a snapshot of the same Gate with a different status. The spec must be unchanged, because it is not compiled again.
func (in *Snapshot) WithGate(g *v1alpha1.Gate) *Snapshot {
	in.compile()
	other := *in
	other.Gate = g
	return &other
}

// compile compiles the spec once for this snapshot and for those that WithGate derives from it.
func (in *Snapshot) compile() *compilation {
	if in.compiled == nil {
		t := timetable.Compile(in.Gate, in.Calendars, slices.DeleteFunc(slices.Clone(in.Exceptions), func(e *v1alpha1.GateException) bool { return !IsOf(in.Gate, e) }))
		in.compiled = &compilation{t, append(slices.Clip(t.Errors), specErrors(in.Gate)...)}
	}
	return in.compiled
}

// Errors returns the errors of an invalid spec.
func (in *Snapshot) Errors() field.ErrorList { return in.compile().errs }

// Broken returns the calendars that cannot be read.
func (in *Snapshot) Broken() []timetable.BrokenCalendar { return in.compile().Broken }

// Warnings returns the warnings about the calendars, in the order of the periods.
func (in *Snapshot) Warnings() []timetable.Ambiguity { return in.compile().Warnings }

// RefusedLeads returns the errors of the lead times that are refused at an instant, by exception name.
func (in *Snapshot) RefusedLeads(now time.Time) map[string]field.ErrorList {
	if len(in.Errors()) > 0 {
		return nil
	}
	return in.compile().RefusedLeads(counting(in.Gate, in.Exceptions, now))
}

// Validate returns the errors that prevent a decision on a Gate, each with the path of its field. The schemas of the CRDs find all other
// errors, see internal/validate.
func Validate(g *v1alpha1.Gate) field.ErrorList {
	return NewSnapshot(g, nil).Errors()
}

// specErrors returns the errors of dependencies, targets and waves. timetable.Compile finds all other errors.
func specErrors(g *v1alpha1.Gate) field.ErrorList {
	return slices.Concat(dependencyErrors(g), timetable.ValidateTargets(g.Spec.Targets), waveErrors(g))
}
