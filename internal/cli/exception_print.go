package cli

import (
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// describeException returns the lines that describe an exception. The Gate is nil if it could not be read.
func describeException(t *terminal, e *v1alpha1.GateException, g *v1alpha1.Gate, now time.Time) [][2]string {
	lines := [][2]string{{"gate", e.Spec.GateRef.Name}}
	if g != nil {
		lines[0][1] += ", is " + t.paintOpen(stateOf(g)) + ", " + reasonOf(g)
	}
	lines = append(lines,
		[2]string{"from", formatUntil(e.Spec.ValidFrom.Time, now)},
		[2]string{"until", formatUntil(e.Spec.ValidUntil.Time, now)})
	if e.Spec.LeadTime != nil {
		lines = append(lines, [2]string{"lead time", formatDuration(e.Spec.LeadTime.Duration)})
	}
	for i := range e.Spec.ClosePeriods {
		lines = append(lines, [2]string{"closes", oneLine(describePeriod(&e.Spec.ClosePeriods[i], e.Spec.TimeZone, now.Location()))})
	}
	for i := range e.Spec.OpenPeriods {
		lines = append(lines, [2]string{"opens", oneLine(describePeriod(&e.Spec.OpenPeriods[i], e.Spec.TimeZone, now.Location()))})
	}
	if e.Spec.Default != "" {
		lines = append(lines, [2]string{"otherwise", string(e.Spec.Default) + ", instead of the schedule of the gate"})
	}
	if why := e.Annotations[descriptionAnnotation]; why != "" {
		lines = append(lines, [2]string{"reason", oneLine(why)})
	}
	authors := strings.Join(authorsOf(e), ", ")
	if authors == "" {
		authors = "unknown"
	}
	lines = append(lines, [2]string{"authors", oneLine(authors)})
	if names := approversOf(e); len(names) > 0 {
		lines = append(lines, [2]string{"approved", "by " + strings.Join(names, ", ")})
	}
	return lines
}
