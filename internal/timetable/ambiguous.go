package timetable

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Ambiguity is a warning about a valid schedule that users often misread, because a cron expression restricts both the day of month and the
// day of week, or has a step that does not divide its field evenly. Warnings about calendars have the same type.
type Ambiguity struct {
	// Field is the path of the schedule, such as spec.openPeriods[0].schedule.
	Field string
	// Message names the period, and explains what the schedule means and what to use instead.
	Message string
}

// Ambiguities returns the ambiguities of a Gate, in the order of its periods. Invalid schedules have none.
func Ambiguities(g *v1alpha1.Gate) (found []Ambiguity) {
	root := field.NewPath("spec")
	for i := range g.Spec.OpenPeriods {
		found = appendAmbiguity(found, root.Child("openPeriods").Index(i), "open period", &g.Spec.OpenPeriods[i])
	}
	for i := range g.Spec.ClosePeriods {
		found = appendAmbiguity(found, root.Child("closePeriods").Index(i), "close period", &g.Spec.ClosePeriods[i].Period)
	}
	return found
}

// AmbiguitiesOfException returns the ambiguities of a GateException.
func AmbiguitiesOfException(e *v1alpha1.GateException) (found []Ambiguity) {
	root := field.NewPath("spec")
	for i := range e.Spec.OpenPeriods {
		found = appendAmbiguity(found, root.Child("openPeriods").Index(i), "open period", &e.Spec.OpenPeriods[i])
	}
	for i := range e.Spec.ClosePeriods {
		found = appendAmbiguity(found, root.Child("closePeriods").Index(i), "close period", &e.Spec.ClosePeriods[i])
	}
	return found
}

// IsAmbiguous returns whether the schedule of a period restricts both the day of month and the day of week.
func IsAmbiguous(p *v1alpha1.Period) bool {
	if p.Schedule == nil {
		return false
	}
	expression, err := schedule.ParseCron(*p.Schedule)
	return err == nil && expression.EitherDay()
}

// appendAmbiguity appends the ambiguities of a period to found. noun is the word for the period in messages.
func appendAmbiguity(found []Ambiguity, path *field.Path, noun string, p *v1alpha1.Period) []Ambiguity {
	if p.Schedule == nil {
		return found
	}
	expression, err := schedule.ParseCron(*p.Schedule)
	if err != nil {
		return found
	}
	fields := strings.Fields(*p.Schedule)
	written := strings.Join(fields, " ")
	if expression.EitherDay() {
		found = append(found, Ambiguity{path.Child("schedule").String(), fmt.Sprintf(
			msgEitherDay+
				msgBothDays,
			noun, p.Name, written, fields[2], fields[4])})
	}
	for _, step := range expression.UnevenSteps() {
		found = append(found, Ambiguity{path.Child("schedule").String(), fmt.Sprintf(
			msgUnevenStep,
			noun, p.Name, written, step.Step, step.Field, step.Values, step.Values)})
	}
	return found
}

// SumUp returns a message about all ambiguities of an object, empty if there are none.
func SumUp(all []Ambiguity) string {
	switch len(all) {
	case 0:
		return ""
	case 1:
		return all[0].Message
	case 2:
		return all[0].Message + msgOneMore
	}
	return fmt.Sprintf(msgMore, all[0].Message, len(all)-1)
}
