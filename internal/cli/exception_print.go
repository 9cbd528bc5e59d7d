package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// exception returns a GateException. An error about missing permissions names the role of approvers.
func (c *cluster) exception(ctx context.Context, key client.ObjectKey) (*v1alpha1.GateException, error) {
	e := &v1alpha1.GateException{}
	err := c.Get(ctx, key, e)
	if apierrors.IsNotFound(err) && !isUnknownResource(err) {
		return nil, notFound(ctx, c, v1alpha1.GroupVersion.WithKind(v1alpha1.GateExceptionKind), key, "gateexception", "kubectl get gateexceptions -A")
	}
	return e, asked{"get", "gateexceptions", key.Namespace, key.Name, approverRole}.explain(err)
}

// exceptionsFor returns the GateExceptions of a Gate.
func exceptionsFor(ctx context.Context, c *cluster, g *v1alpha1.Gate) ([]*v1alpha1.GateException, error) {
	all, err := c.exceptions(ctx, []string{g.Namespace})
	return slices.DeleteFunc(all, func(e *v1alpha1.GateException) bool { return !gate.IsOf(g, e) }), err
}

func nameOfException(e *v1alpha1.GateException) string {
	return "gateexception " + e.Namespace + "/" + e.Name
}

// descriptionAnnotation is the annotation of Kubernetes for the purpose of an object.
const descriptionAnnotation = "kubernetes.io/description"

// authorsOf returns the authors of an exception, as the API server recorded them.
func authorsOf(e *v1alpha1.GateException) []string {
	return strings.FieldsFunc(e.Annotations[v1alpha1.AuthorsAnnotation], func(r rune) bool { return r == '\n' })
}

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

// approversOf returns the approvers of the present generation of an exception.
func approversOf(e *v1alpha1.GateException) (names []string) {
	for _, a := range e.Status.Approvals {
		if a.Generation == e.Generation {
			names = append(names, a.ApprovedBy)
		}
	}
	return names
}

// describePeriod describes a period of an object with a time zone. Instants are in zone.
func describePeriod(p *v1alpha1.Period, of v1alpha1.TimeZone, zone *time.Location) string {
	text := ""
	switch {
	case p.From != nil && p.Until != nil && !p.From.Time().IsZero():
		return fmt.Sprintf("%s: from %s until %s", p.Name, formatTime(p.From.Time().In(zone)), formatTime(p.Until.Time().In(zone)))
	case p.From != nil && p.Until != nil:
		text = fmt.Sprintf("%s: from %s until %s", p.Name, *p.From, *p.Until)
		if len(*p.Until) == len(time.DateOnly) {
			text += " inclusive"
		}
	case p.Schedule != nil && p.Duration != nil:
		text = fmt.Sprintf("%s: cron %s, for %s", p.Name, *p.Schedule, formatDuration(p.Duration.Duration))
		if timetable.IsAmbiguous(p) {
			text += ", on days that match the day of month OR the day of week,"
		}
	case p.Start != nil && p.End != nil:
		text = fmt.Sprintf("%s: %s from %s to %s", p.Name, describeDays(p), *p.Start, *p.End)
	default:
		return p.Name + ": invalid"
	}
	return text + " in " + string(cmp.Or(p.TimeZone, of, "UTC"))
}

func describeDays(p *v1alpha1.Period) string {
	text := cmp.Or(joined(p.DaysOfWeek), "daily")
	switch {
	case len(p.WeeksOfMonth) > 0:
		text += " (" + joined(p.WeeksOfMonth) + " of the month)"
	case len(p.DaysOfMonth) > 0:
		text = "on days " + joined(p.DaysOfMonth) + " of the month"
	case len(p.WorkdaysOfMonth) > 0:
		text = "on workdays " + joined(p.WorkdaysOfMonth) + " of the month"
	case p.EveryWeeks != nil && p.Anchor != nil:
		text += fmt.Sprintf(" every %d weeks, counted from the week of %s,", *p.EveryWeeks, *p.Anchor)
	}
	return text
}

func joined[T ~string | ~int32](words []T) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = fmt.Sprint(word)
	}
	return strings.Join(texts, ", ")
}

// conditionOf returns a condition, an empty one if it is missing.
func conditionOf(conditions []metav1.Condition, of string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, of); c != nil {
		return *c
	}
	return metav1.Condition{}
}
