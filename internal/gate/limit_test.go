package gate_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// limited has a Gate close over at most 10 targets. Its status is about its spec, and says what it is.
func limited(status metav1.ConditionStatus, reason string) func(*v1alpha1.Gate) {
	return func(g *v1alpha1.Gate) {
		g.Spec.MaxTargets, g.Generation, g.Status.ObservedGeneration = ptr.To(int32(10)), 2, 2
		if status != "" {
			meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.OpenedCondition, Status: status, Reason: reason, Message: "as before"})
		}
	}
}

func TestWhatBecomesOfACloseThatWouldHoldTooMuch(t *testing.T) {
	const (
		refused  = v1alpha1.TooManyTargetsReason
		numbers  = ": it governs 11 targets, and spec.maxTargets allows 10. Raise spec.maxTargets or take targets out."
		stays    = "opened TooManyTargets: Gate stays opened although it is due to close (closed by default)" + numbers
		keeps    = "closed TooManyTargets: Gate stays closed (closed by default), what it holds stays held, and nothing else is held" + numbers
		closes   = "closed Default: Gate closed by default"
		isOpened = metav1.ConditionTrue
		isClosed = metav1.ConditionFalse
	)
	edited := func(g *v1alpha1.Gate) { g.Generation++ }
	for name, tc := range map[string]struct {
		before func(*v1alpha1.Gate)
		edit   func(*v1alpha1.Gate)
		n      gate.Governed
		want   string
	}{
		"it was open": {limited(isOpened, "OpenPeriod"), nil, gate.Governed{Count: 11}, stays},
		"it was open, and governs as many as allowed":  {limited(isOpened, "OpenPeriod"), nil, gate.Governed{Count: 10}, closes},
		"it was open, and not all targets are read":    {limited(isOpened, "OpenPeriod"), nil, gate.Governed{Count: 3, Partial: true}, closes},
		"too many are read already":                    {limited(isOpened, "OpenPeriod"), nil, gate.Governed{Count: 11, Partial: true}, stays},
		"it was refused":                               {limited(isOpened, refused), nil, gate.Governed{Count: 11}, stays},
		"it was refused, and there are fewer now":      {limited(isOpened, refused), nil, gate.Governed{Count: 10}, closes},
		"it was refused, and not all are read":         {limited(isOpened, refused), nil, gate.Governed{Count: 3, Partial: true}, "opened TooManyTargets: as before"},
		"there is no limit":                            {limited(isOpened, "OpenPeriod"), func(g *v1alpha1.Gate) { g.Spec.MaxTargets = nil }, gate.Governed{Count: 11}, closes},
		"nobody has decided":                           {limited("", ""), nil, gate.Governed{Count: 11}, stays},
		"nobody has decided, and its name is on some":  {limited("", ""), nil, gate.Governed{Count: 11, Held: true}, keeps},
		"it was closed, and objects have been created": {limited(isClosed, "Default"), nil, gate.Governed{Count: 11}, closes},
		"it was closed, and somebody has edited it":    {limited(isClosed, "Default"), edited, gate.Governed{Count: 11, Held: true}, keeps},
		"it was closed, and an edit takes targets out": {limited(isClosed, "Default"), edited, gate.Governed{Count: 10, Held: true}, closes},
		"it keeps what it holds":                       {limited(isClosed, refused), nil, gate.Governed{Count: 11}, keeps},
		"it kept what it holds, and there are fewer":   {limited(isClosed, refused), nil, gate.Governed{Count: 10}, closes},
		"it keeps what it holds, and not all are read": {limited(isClosed, refused), nil, gate.Governed{Partial: true}, "closed TooManyTargets: as before"},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			if tc.before(g); tc.edit != nil {
				tc.edit(g)
			}
			d := gate.Decide(g, noon).Limit(g, tc.n)
			if got := string(d.State) + " " + d.Reason + ": " + d.Message; got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAGateThatStaysOpenDoesNotSayThatItOpens(t *testing.T) {
	g := closed(windows(weekly("nights", "22:00", "23:00")))
	limited(metav1.ConditionTrue, "OpenPeriod")(g)
	d := gate.Decide(g, noon).Limit(g, gate.Governed{Count: 11})
	if at := noon.Add(10 * time.Hour); d.Next != nil || !d.Recheck.Equal(at) || d.By != "" {
		t.Errorf("next %+v, looked at again at %s, by %q", d.Next, d.Recheck, d.By)
	}
	limited(metav1.ConditionFalse, "OutsideOpenPeriods")(g)
	g.Generation++
	if d := gate.Decide(g, noon).Limit(g, gate.Governed{Count: 11}); d.Next == nil || d.Next.State != v1alpha1.StateOpened {
		t.Errorf("a gate that stays closed opens, it says %+v", d.Next)
	}
}

func TestAnOpenGateNeedsNoCount(t *testing.T) {
	g := opened()
	limited(metav1.ConditionTrue, "Default")(g)
	if d := gate.Decide(g, noon); d.IsLimited(g) || d.Limit(g, gate.Governed{Count: 11}).Reason != "Default" {
		t.Errorf("%+v", d)
	}
}

func TestARefusedCloseIsDueAlsoIfTheSpecBecomesInvalid(t *testing.T) {
	g := closed(func(s *v1alpha1.GateSpec) { s.TimeZone = "Mars/Base" })
	limited(metav1.ConditionTrue, v1alpha1.TooManyTargetsReason)(g)
	d := gate.Decide(g, noon)
	if got := d.Limit(g, gate.Governed{Count: 10}); got.State != v1alpha1.StateClosed || got.Reason != v1alpha1.InvalidSpecReason {
		t.Errorf("with fewer targets: %s %s: %s", got.State, got.Reason, got.Message)
	}
	if got := d.Limit(g, gate.Governed{Count: 11}); got.State != v1alpha1.StateOpened || !got.IsRefused() || len(got.Errors) == 0 {
		t.Errorf("with as many as before: %s %s: %s", got.State, got.Reason, got.Message)
	}
}

func TestTheHistoryOfARefusedCloseSaysWhoAskedAndWhyNot(t *testing.T) {
	g := opened()
	limited(metav1.ConditionTrue, "Default")(g)
	annotate(g, v1alpha1.RequestClose, stamp(noon))
	by(g, v1alpha1.RequestClose, "alice", "incident 77")
	handled := handle(g, noon)
	d := gate.Decide(g, noon).Limit(g, gate.Governed{Count: 11})
	gate.RecordHistory(g, d, handled, noon, true)
	if len(g.Status.History) != 1 {
		t.Fatalf("%+v", g.Status.History)
	}
	e := g.Status.History[0]
	if e.State != v1alpha1.StateOpened || e.Reason != v1alpha1.TooManyTargetsReason || e.Action != v1alpha1.RequestClose ||
		e.RequestedBy != "alice" || e.RequestReason != "incident 77" || e.Refused != d.Message {
		t.Errorf("%+v", e)
	}
}
