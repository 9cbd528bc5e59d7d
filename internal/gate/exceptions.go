package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Bounds of a GateException and of how many must approve it, as the CRD has them.
const (
	minLeadTime   = time.Second
	maxLeadTime   = v1alpha1.MaxExceptionDuration
	maxNameLength = 253
	maxApprovers  = 10
)

var exceptionTypes = map[v1alpha1.ExceptionType]schedule.ExceptionType{
	v1alpha1.ExceptionExtend: schedule.Extend, v1alpha1.ExceptionSuspend: schedule.Suspend, v1alpha1.ExceptionReplace: schedule.Replace,
}

// ValidateException returns what is wrong with a GateException, each error with
// the path of its field. As Validate does for a Gate, it covers what the CRD's
// schema refuses too.
func ValidateException(e *v1alpha1.GateException) field.ErrorList {
	c := &compiler{}
	c.zone = c.loadZone(nil, "UTC")
	root := field.NewPath("spec")
	switch name := e.Spec.GateRef.Name; {
	case name == "":
		c.add(field.Required(root.Child("gateRef", "name"), "an exception needs the name of a gate"))
	case len(name) > maxNameLength:
		c.add(field.TooLong(root.Child("gateRef", "name"), name, maxNameLength))
	}
	if _, ok := exceptionTypes[e.Spec.Type]; !ok {
		c.add(field.NotSupported(root.Child("type"), e.Spec.Type,
			[]v1alpha1.ExceptionType{v1alpha1.ExceptionExtend, v1alpha1.ExceptionSuspend, v1alpha1.ExceptionReplace}))
	}
	c.validity(root, &e.Spec)
	if lead := e.Spec.LeadTime; lead != nil {
		if e.Spec.Type != v1alpha1.ExceptionSuspend {
			c.add(field.Invalid(root.Child("leadTime"), lead.Duration.String(), "is for type suspend only"))
		}
		if lead.Duration < minLeadTime || lead.Duration > maxLeadTime {
			c.add(field.Invalid(root.Child("leadTime"), lead.Duration.String(), "must be from 1s to 2160h (90 days)"))
		}
	}
	if ttl := e.Spec.TTLAfterExpired; ttl != nil && (ttl.Duration < 0 || ttl.Duration > v1alpha1.MaxTTLAfterExpired) {
		c.add(field.Invalid(root.Child("ttlAfterExpired"), ttl.Duration.String(), "must be from 0s to 87600h (10 years)"))
	}
	c.windows(root.Child("windows"), &e.Spec, true)
	return c.errs
}

// ValidateLead returns what is wrong with the lead of an exception on the schedule of
// its Gate, if both are valid by themselves.
func ValidateLead(e *v1alpha1.GateException, g *v1alpha1.Gate) field.ErrorList {
	config, errs := compile(&g.Spec)
	if e.Spec.LeadTime == nil || len(errs) > 0 || len(ValidateException(e)) > 0 {
		return nil
	}
	config.Exceptions = []schedule.Exception{compileException(&g.Spec, e)}
	if len(schedule.NewPlan(config).Refused()) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "leadTime"), e.Spec.LeadTime.Duration.String(),
		"cannot be had: the gate and the windows of the exception change too often for it, use fewer or longer windows")}
}

func (c *compiler) validity(root *field.Path, spec *v1alpha1.GateExceptionSpec) {
	from, until := spec.ValidFrom.Time, spec.ValidUntil.Time
	for _, bound := range []struct {
		name string
		at   time.Time
	}{{"validFrom", from}, {"validUntil", until}} {
		switch {
		case bound.at.IsZero():
			c.add(field.Required(root.Child(bound.name), "an exception is bound in time"))
		case bound.at.Nanosecond() != 0:
			c.add(field.Invalid(root.Child(bound.name), bound.at.Format(time.RFC3339Nano), "must be in whole seconds"))
		}
	}
	switch {
	case from.IsZero() || until.IsZero():
	case !from.Before(until):
		c.add(field.Invalid(root.Child("validUntil"), until.Format(time.RFC3339), "must be later than validFrom"))
	case until.Sub(from) > v1alpha1.MaxExceptionDuration:
		c.add(field.Invalid(root.Child("validUntil"), until.Format(time.RFC3339), "must be at most 2160h (90 days) after validFrom"))
	}
}

// windows compiles the windows of an exception in the zone of the compiler, see
// period for opens.
func (c *compiler) windows(path *field.Path, spec *v1alpha1.GateExceptionSpec, opens bool) []schedule.Period {
	switch n := len(spec.Windows); {
	case n == 0 && spec.Type != v1alpha1.ExceptionReplace:
		c.add(field.Required(path, "an exception needs windows, but for one of type replace"))
	case n > v1alpha1.MaxPeriods:
		c.add(field.TooMany(path, n, v1alpha1.MaxPeriods))
		return nil
	}
	var periods []schedule.Period
	names := map[string]bool{}
	for i := range spec.Windows {
		periods = append(periods, c.period(path.Index(i), &spec.Windows[i], names, opens))
	}
	return periods
}

// compileException returns an exception of a Gate for its schedule. One that is
// invalid is broken.
func compileException(g *v1alpha1.GateSpec, e *v1alpha1.GateException) schedule.Exception {
	compiled := schedule.Exception{
		Name: e.Name, Type: exceptionTypes[e.Spec.Type], From: e.Spec.ValidFrom.Time, Until: e.Spec.ValidUntil.Time,
		Broken: len(ValidateException(e)) > 0,
	}
	if _, known := exceptionTypes[e.Spec.Type]; !known {
		compiled.Type = schedule.Replace // which can do both
	}
	if compiled.Broken {
		return compiled
	}
	if e.Spec.LeadTime != nil {
		compiled.Lead = e.Spec.LeadTime.Duration
	}
	c := &compiler{}
	c.zone = c.loadZone(nil, g.TimeZone)
	opens := (g.Default == v1alpha1.StateClosed) == (e.Spec.Type != v1alpha1.ExceptionSuspend)
	compiled.Windows = c.windows(nil, &e.Spec, opens)
	return compiled
}

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
