package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// counting returns the exceptions of a Gate that count from an instant on, in
// their order of precedence: the newest first, of two that were created in the same
// second the first by name.
func counting(g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) []*v1alpha1.GateException {
	var counts []*v1alpha1.GateException
	for _, e := range exceptions {
		if IsOf(g, e) && e.DeletionTimestamp.IsZero() && !e.ExpiredBy(now) && Missing(g, e) == 0 {
			counts = append(counts, e)
		}
	}
	slices.SortFunc(counts, func(a, b *v1alpha1.GateException) int {
		if order := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return counts
}

// IsOf returns whether an exception is of a Gate: exceptions of another namespace
// never are.
func IsOf(g *v1alpha1.Gate, e *v1alpha1.GateException) bool {
	return e.Namespace == g.Namespace && e.Spec.GateRef.Name == g.Name
}

func isValidAt(e *v1alpha1.GateException, now time.Time) bool {
	return !now.Before(e.Spec.ValidFrom.Time) && !e.ExpiredBy(now)
}

// applying returns the one of the exceptions that count that applies at an instant,
// nil if none does.
func applying(counts []*v1alpha1.GateException, now time.Time) *v1alpha1.GateException {
	for _, e := range counts {
		if isValidAt(e, now) {
			return e
		}
	}
	return nil
}

// nextEdge returns the next instant at which one of some exceptions begins or ends,
// zero if none does.
func nextEdge(exceptions []*v1alpha1.GateException, now time.Time) time.Time {
	next := time.Time{}
	for _, e := range exceptions {
		for _, at := range []time.Time{e.Spec.ValidFrom.Time, e.Spec.ValidUntil.Time} {
			if at.After(now) {
				next = earlier(next, at)
			}
		}
	}
	return next
}

// Overlapping returns those of some exceptions that win over one of a Gate at some time
// from an instant on, in their order of precedence.
func Overlapping(e *v1alpha1.GateException, g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) []*v1alpha1.GateException {
	counts := counting(g, exceptions, now)
	own := slices.IndexFunc(counts, func(c *v1alpha1.GateException) bool { return c.Name == e.Name })
	return slices.DeleteFunc(counts[:max(own, 0)], func(newer *v1alpha1.GateException) bool {
		return !newer.Spec.ValidFrom.Before(&e.Spec.ValidUntil) || !e.Spec.ValidFrom.Before(&newer.Spec.ValidUntil)
	})
}

// ExceptionDecision is what a GateException is at an instant.
type ExceptionDecision struct {
	State v1alpha1.ExceptionState
	// Active is whether it applies, and Reason and Message say why or why not.
	Active          bool
	Reason, Message string
	// Overlapped says which newer exception wins over it, empty if none does.
	Overlapped string
	// Errors of a spec that is invalid.
	Errors field.ErrorList
	// Recheck is when this changes by itself, zero if it does not.
	Recheck time.Time
}

// DecideException returns the decision on an exception at an instant. The Gate is
// nil if it does not exist; exceptions are all that refer to it, this one included.
func DecideException(e *v1alpha1.GateException, g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) ExceptionDecision {
	until := rfc3339(e.Spec.ValidUntil.Time)
	if e.ExpiredBy(now) {
		return ExceptionDecision{State: v1alpha1.ExceptionExpired, Reason: v1alpha1.ExpiredReason, Message: "Exception expired at " + until}
	}
	if !e.DeletionTimestamp.IsZero() {
		return ExceptionDecision{State: v1alpha1.ExceptionExpired, Reason: v1alpha1.ExpiredReason, Message: "Exception is being deleted"}
	}
	d := ExceptionDecision{State: v1alpha1.ExceptionPending, Errors: ValidateException(e), Recheck: nextEdge(exceptions, now)}
	if g == nil {
		d.Reason = v1alpha1.GateNotFoundReason
		d.Message = fmt.Sprintf("Gate '%s/%s' does not exist, the exception counts as soon as it does", e.Namespace, e.Spec.GateRef.Name)
		return d
	}
	d.Errors = append(d.Errors, ValidateLead(e, g)...)
	name := g.Namespace + "/" + g.Name
	if why := notReady(g); why != "" {
		d.Reason, d.Message = v1alpha1.GateNotReadyReason, fmt.Sprintf("Gate '%s' %s, and no exception changes that", name, why)
		return d
	}
	if Missing(g, e) > 0 {
		d.Reason, d.Message = v1alpha1.WaitingApprovalReason, waiting(g, e)
		return d
	}
	winner := applying(counting(g, exceptions, now), now)
	if newer := Overlapping(e, g, exceptions, now); len(newer) > 0 {
		first := newer[0]
		if slices.Contains(newer, winner) {
			first = winner
		}
		d.Overlapped = fmt.Sprintf("Exception '%s' of gate '%s' is newer and wins from %s until %s",
			first.Name, name, rfc3339(first.Spec.ValidFrom.Time), rfc3339(first.Spec.ValidUntil.Time))
	}
	valid := fmt.Sprintf("from %s until %s", rfc3339(e.Spec.ValidFrom.Time), until)
	switch {
	case !isValidAt(e, now):
		d.Reason, d.Message = v1alpha1.PendingReason, fmt.Sprintf("Exception applies to gate '%s' %s", name, valid)
	case winner == nil || winner.Name != e.Name:
		d.Reason, d.Message = v1alpha1.OverlappedReason, d.Overlapped
		return d
	default:
		d.State, d.Active, d.Reason = v1alpha1.ExceptionActive, true, v1alpha1.InForceReason
		d.Message = fmt.Sprintf("Exception applies to gate '%s' until %s", name, until)
	}
	if len(d.Errors) > 0 {
		d.Reason = v1alpha1.InvalidSpecReason
		d.Message = fmt.Sprintf("Exception is invalid: %s it opens nothing of gate '%s', and whatever it could close is closed: %s", valid, name, d.Errors.ToAggregate())
	}
	return d
}

// notReady says why a Gate stays as it is, whatever its exceptions say. It is empty
// if it does not.
func notReady(g *v1alpha1.Gate) string {
	if g.Spec.Suspend {
		return "is suspended and stays as it is"
	}
	if _, errs := compile(&g.Spec); len(errs) > 0 {
		return "has an invalid spec and opens nothing"
	}
	return ""
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }
