package check

import (
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Schedules finds cron expressions that users often misread, in Gates and in exceptions that have not ended.
func Schedules(gates []v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) (findings []Finding) {
	add := func(object string, all []timetable.Ambiguity) {
		for _, a := range all {
			findings = append(findings, Finding{Warning, object, a.Message, "if that is intended, write two periods, one for the days of month and one for the days of week"})
		}
	}
	for i := range gates {
		add(gateName(&gates[i]), timetable.Ambiguities(&gates[i]))
	}
	for _, e := range exceptions {
		if !e.ExpiredBy(now) {
			add(v1alpha1.GateExceptionKind+" "+e.Namespace+"/"+e.Name, timetable.AmbiguitiesOfException(e))
		}
	}
	return findings
}
