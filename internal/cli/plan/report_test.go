package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/cli/term/termtest"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// now is a Saturday.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestPlanReportsAreLists(t *testing.T) {
	at, r := metav1.NewTime(now), preview.Range{From: now, Until: now.AddDate(0, 0, 1)}
	cause := preview.Cause{State: "opened", Reason: "OpenPeriod", Period: "nights"}
	timeline := preview.Timeline{Intervals: []preview.Interval{{From: at, Until: at, Cause: cause}}}
	change := preview.Change{Change: preview.Changed, Differences: []preview.Difference{{From: at, Until: at, Before: cause, After: cause}}}
	t.Run("diff", termtest.Prints(term.GateChangeReport, []gateChange{{newReportRange("flux-system/production", r), change}}, func(s *term.Terminal, o *term.Output) error {
		change.Gate = "flux-system/production"
		return printChanges(o, s.Out, &preview.Changes{Gates: []preview.Change{change}}, r)
	}))
	t.Run("preview", termtest.Prints(term.GateTimelineReport, []GateTimeline{{newReportRange("flux-system/production", r), timeline}}, func(s *term.Terminal, o *term.Output) error {
		timeline.Gate = "flux-system/production"
		return printTimelines(o, s.Out, &preview.Report{Gates: []preview.Timeline{timeline}}, r)
	}))
}
