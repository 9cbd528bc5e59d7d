package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// minutely returns as many periods as can be, each a minute of every other minute.
func minutely(n int) (periods []v1alpha1.Period) {
	schedule := "*/2 * * * *"
	for i := range n {
		periods = append(periods, v1alpha1.Period{Name: fmt.Sprintf("p%d", i), Schedule: &schedule, Duration: duration(time.Minute)})
	}
	return periods
}

func TestExpensiveLeadIsErrorAndCloses(t *testing.T) {
	g := closed(windows(minutely(100)...))
	production(g)
	e := exception(func(e *v1alpha1.GateException) {
		e.Spec.ClosePeriods, e.Spec.LeadTime = minutely(100), duration(time.Hour)
		e.Spec.ValidUntil.Time = e.Spec.ValidFrom.AddDate(0, 0, 90)
	})
	if errs := timetable.ValidateException(e); len(errs) > 0 {
		t.Fatalf("by itself it is valid: %v", errs)
	}
	at := e.Spec.ValidFrom.Add(time.Hour + 30*time.Second)
	d := gate.DecideException(e, g, []*v1alpha1.GateException{e}, at)
	if len(d.Errors) != 1 || d.Errors[0].Field != "spec.leadTime" || d.Reason != v1alpha1.InvalidSpecReason {
		t.Errorf("got %+v", d)
	}
	decided := gate.Decide(g, at, e)
	if decided.State != v1alpha1.StateClosed || decided.Reason != v1alpha1.ExceptionAppliesReason || !strings.HasSuffix(decided.Message, "exception 'x' is invalid") {
		t.Errorf("got %+v", decided)
	}
	e.Spec.LeadTime = nil
	if d := gate.DecideException(e, g, []*v1alpha1.GateException{e}, at); len(d.Errors) > 0 {
		t.Errorf("without a lead it is valid: %v", d.Errors)
	}
}
