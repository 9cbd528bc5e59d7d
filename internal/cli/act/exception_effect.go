package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// warnings returns warnings if an exception has no effect on a Gate, or only a partial effect. inVain is the reason why it has no effect,
// empty if it has an effect or that is unknown.
func (w plannedException) warnings(now time.Time) (doubts []string, inVain string) {
	g, e, others := w.gate, w.exception, w.others
	in := func(at time.Time) string { return term.FormatTime(at.In(now.Location())) }
	for _, o := range others {
		if !e.OnlyCloses() && !o.OnlyCloses() && !e.HasTargets() && !o.HasTargets() && !o.ExpiredBy(now) && o.Spec.ValidFrom.Before(&e.Spec.ValidUntil) && e.Spec.ValidFrom.Before(&o.Spec.ValidUntil) {
			doubts = append(doubts, fmt.Sprintf("it overlaps with %s, which is in force from %s until %s: the API server refuses it with config/policies, and otherwise the newer exception takes precedence",
				exceptionTitle(o), in(o.Spec.ValidFrom.Time), in(o.Spec.ValidUntil.Time)))
		}
	}
	if g.Spec.Suspend {
		doubts = append(doubts, "the gate is suspended, so exceptions have no effect")
	}
	is, stays := "the gate is still", "the gate stays"
	if e = e.DeepCopy(); e.HasTargets() { // the same effect, but only on some targets
		e.Spec.Targets, others = nil, nil
		is, stays = "these targets are still", "these targets stay"
	}
	e.CreationTimestamp = preview.NotCreated
	wanted, ok := uniformState(e)
	intervals, errs := gate.NewSnapshot(preview.WithoutApprovals(g), w.calendars, append(slices.Clone(others), e)...).Intervals(schedule.Later(now, e.Spec.ValidFrom.Time), e.Spec.ValidUntil.Time)
	switch {
	case len(errs) > 0:
		return append(doubts, "the spec of the gate is invalid, so exceptions have no effect: "+errs.ToAggregate().Error()), ""
	case !ok:
		return doubts, ""
	}
	works, partly := false, doubts
	for i := range intervals {
		if v1alpha1.State(i.State.String()) == wanted {
			works = true
			continue
		}
		why, state := describeCause(g, string(i.Reason), i.By), term.Adjective(i.State.String())
		partly = append(partly, fmt.Sprintf("%s %s from %s until %s: %s", is, state, in(i.From), in(i.Until), why))
		if inVain == "" {
			inVain = fmt.Sprintf("%s %s: %s", stays, state, why)
		}
	}
	if works {
		return partly, ""
	}
	return doubts, inVain
}

// describeCause describes the reason for a state. It marks close periods that no open request can override.
func describeCause(g *v1alpha1.Gate, reason, by string) string {
	text := describe.Words(reason, by)
	for i := range g.Spec.ClosePeriods {
		if p := &g.Spec.ClosePeriods[i]; reason == v1alpha1.ClosePeriodReason && p.Name == by && p.Override == v1alpha1.OverrideDeny {
			return text + " (override: Deny)"
		}
	}
	return text
}

// uniformState returns the state in which an exception keeps the Gate throughout its validity. It returns false if there is more than one
// state, or if the schedule decides at some times.
func uniformState(e *v1alpha1.GateException) (v1alpha1.State, bool) {
	open, shut := e.Spec.OpenPeriods, e.Spec.ClosePeriods
	switch {
	case len(open)+len(shut) == 0:
		return e.Spec.Default, e.Spec.Default != ""
	case len(open)+len(shut) > 1:
		return "", false
	case len(open) == 1:
		return v1alpha1.StateOpened, coversValidity(&open[0], e)
	default:
		return v1alpha1.StateClosed, coversValidity(&shut[0], e)
	}
}

// coversValidity returns whether a period covers the whole validity of an exception.
func coversValidity(p *v1alpha1.Period, e *v1alpha1.GateException) bool {
	return p.From != nil && p.Until != nil && p.From.Time().Equal(e.Spec.ValidFrom.Time) && p.Until.Time().Equal(e.Spec.ValidUntil.Time)
}

// checkEffect warns if an exception has no effect on a Gate, or only a partial effect. inVain is the reason why it has no effect, empty
// if it has an effect or that is unknown.
func checkEffect(ctx context.Context, t *term.Terminal, c *kube.Cluster, g *v1alpha1.Gate, e *v1alpha1.GateException, now time.Time) (inVain string, err error) {
	others, err := kube.ExceptionsFor(ctx, c, g)
	if err != nil {
		t.Warn("the exception is not checked against other exceptions: %s", term.OneLine(err.Error()))
	}
	others = slices.DeleteFunc(others, func(o *v1alpha1.GateException) bool { return o.Name == e.Name })
	calendars, err := kube.Calendars(ctx, c, now, g)
	if err != nil {
		t.Warn("the exception is not checked against the gate, because of its calendars: %s", term.OneLine(err.Error()))
		return "", nil
	}
	w := plannedException{g, e, others, calendars}
	if err := w.validateLead(now); err != nil {
		return "", err
	}
	doubts, inVain := w.warnings(now)
	for _, doubt := range doubts {
		t.Warn("%s", doubt)
	}
	return inVain, nil
}

// plannedException is an exception that has not been written yet, with its Gate, the other exceptions of the Gate, and the calendars.
type plannedException struct {
	gate      *v1alpha1.Gate
	exception *v1alpha1.GateException
	others    []*v1alpha1.GateException
	calendars timetable.Calendars
}

// validateLead returns an error if the lead time takes too long to compute.
func (w plannedException) validateLead(now time.Time) error {
	refused := gate.NewSnapshot(preview.WithoutApprovals(w.gate), w.calendars, append(slices.Clone(w.others), w.exception)...).RefusedLeads(now)
	return refused[w.exception.Name].ToAggregate()
}

// checkTargets returns an error if a target of an exception does not exist or is not governed by the Gate, because the exception would have
// no effect on it.
func checkTargets(ctx context.Context, k *kube.Factory, c *kube.Cluster, g *v1alpha1.Gate, e *v1alpha1.GateException) error {
	if !e.HasTargets() {
		return nil
	}
	objects, err := k.Objects(ctx, c)
	if err != nil {
		return err
	}
	for i := range e.Spec.Targets {
		if _, err := targetOf(ctx, objects, c.VerdictScope(ctx), g, &e.Spec.Targets[i]); err != nil {
			return err
		}
	}
	return nil
}
