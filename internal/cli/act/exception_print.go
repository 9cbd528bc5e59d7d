package act

import (
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// describeException returns the lines that describe an exception. g is nil if the Gate could not be read.
func describeException(t *term.Terminal, e *v1alpha1.GateException, g *v1alpha1.Gate, now time.Time) [][2]string {
	lines := [][2]string{{"gate", e.Spec.GateRef.Name}}
	if g != nil {
		lines[0][1] += ", is " + t.PaintAdjective(describe.State(g)) + ", " + describe.Reason(g)
	}
	if e.HasTargets() {
		lines = append(lines, [2]string{"only for", term.OneLine(gate.Only(e.Spec.Targets))})
	}
	lines = append(lines,
		[2]string{"from", term.FormatUntil(e.Spec.ValidFrom.Time, now)},
		[2]string{"until", term.FormatUntil(e.Spec.ValidUntil.Time, now)})
	if e.Spec.LeadTime != nil {
		lines = append(lines, [2]string{"lead time", term.FormatDuration(e.Spec.LeadTime.Duration)})
	}
	for i := range e.Spec.ClosePeriods {
		lines = append(lines, [2]string{"closes", term.OneLine(describePeriod(&e.Spec.ClosePeriods[i], e.Spec.TimeZone, now.Location()))})
	}
	for i := range e.Spec.OpenPeriods {
		lines = append(lines, [2]string{"opens", term.OneLine(describePeriod(&e.Spec.OpenPeriods[i], e.Spec.TimeZone, now.Location()))})
	}
	if e.Spec.Default != "" {
		lines = append(lines, [2]string{"otherwise", string(e.Spec.Default) + ", instead of the schedule of the gate"})
	}
	if why := e.Annotations[descriptionAnnotation]; why != "" {
		lines = append(lines, [2]string{"reason", term.OneLine(why)})
	}
	authors := strings.Join(exceptionAuthors(e), ", ")
	if authors == "" {
		authors = "unknown"
	}
	lines = append(lines, [2]string{"authors", term.OneLine(authors)})
	if names := exceptionApprovers(e); len(names) > 0 {
		lines = append(lines, [2]string{"approved", "by " + strings.Join(names, ", ")})
	}
	return lines
}
