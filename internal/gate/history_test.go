package gate_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// passes has a Gate decided at an instant as the controller does, with its history.
func passes(g *v1alpha1.Gate, now time.Time) {
	g.Status = gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, now).Status(nil)
}

func TestHistoryHasChangesAndRequests(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC) }
	g := closed(func(s *v1alpha1.GateSpec) { s.OpenPeriods = []v1alpha1.Period{weekly("noon", "12:00", "14:00")} })
	passes(g, at(9))
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T10:00:00Z/1h")
	by(g, v1alpha1.RequestOpen, "alice", "hotfix")
	passes(g, at(10))
	passes(g, at(11))
	passes(g, at(12))
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T13:00:00Z/2h")
	by(g, v1alpha1.RequestOpen, "bob", "")
	passes(g, at(13))
	annotate(g, v1alpha1.RequestClose, "yesterday")
	passes(g, at(13))
	stampOf := func(hour int) *metav1.MicroTime { return &metav1.MicroTime{Time: at(hour)} }
	want := []v1alpha1.HistoryEntry{
		{At: metav1.NewTime(at(13)), Reason: "RequestRefused", Action: "close", Refused: "must be TIME[/DURATION|/unlimited][,only=KIND/NAME]..., such as 2026-12-19T12:00:00Z/3d"},
		{At: metav1.NewTime(at(13)), Reason: "RequestAccepted", Action: "open", Until: &metav1.Time{Time: at(15)}, RequestedAt: stampOf(13), RequestedBy: "bob"},
		{At: metav1.NewTime(at(12)), State: "opened", Reason: "OpenPeriod", Period: "noon", Until: &metav1.Time{Time: at(14)}},
		{At: metav1.NewTime(at(11)), State: "closed", Reason: "OutsideOpenPeriods", Until: &metav1.Time{Time: at(12)}},
		{
			At: metav1.NewTime(at(10)), State: "opened", Reason: "OpenRequested", Until: &metav1.Time{Time: at(11)},
			Action: "open", RequestedAt: stampOf(10), RequestedBy: "alice", Message: "hotfix",
		},
		{At: metav1.NewTime(at(9)), State: "closed", Reason: "OutsideOpenPeriods", Until: &metav1.Time{Time: at(12)}},
	}
	if !reflect.DeepEqual(g.Status.History, want) {
		t.Errorf("got  %+v\nwant %+v", g.Status.History, want)
	}
	before := len(g.Status.History)
	if passes(g, at(13)); len(g.Status.History) != before {
		t.Error("a decision that changes nothing is in the history")
	}
}

func TestHistoryIsBounded(t *testing.T) {
	g := closed()
	for n := range 60 {
		annotate(g, v1alpha1.RequestOpen, stamp(noon.Add(time.Duration(n)*time.Minute)))
		by(g, v1alpha1.RequestOpen, "alice", fmt.Sprintf("%d", n))
		passes(g, noon.Add(time.Duration(n)*time.Minute))
	}
	if n := len(g.Status.History); n != v1alpha1.MaxHistory || g.Status.History[0].Message != "59" {
		t.Errorf("%d entries, the first of %q", n, g.Status.History[0].Message)
	}
	for n := range 60 {
		annotate(g, v1alpha1.RequestOpen, stamp(noon.Add(time.Duration(100+n)*time.Minute)))
		by(g, v1alpha1.RequestOpen, strings.Repeat("b", 1000), strings.Repeat("r", 1000))
		passes(g, noon.Add(time.Duration(100+n)*time.Minute))
	}
	size := 0
	for _, e := range g.Status.History {
		size += len(e.RequestedBy) + len(e.Message)
	}
	if size > v1alpha1.MaxHistoryBytes || size < v1alpha1.MaxHistoryBytes-1000 {
		t.Errorf("%d bytes", size)
	}
}

func TestPlannedAndWithdrawnReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		action v1alpha1.RequestAction
		value  string
		want   string
	}{
		"now":        {v1alpha1.RequestOpen, stamp(noon), v1alpha1.RequestAcceptedReason},
		"later":      {v1alpha1.RequestOpen, stamp(noon.Add(time.Hour)), v1alpha1.RequestPlannedReason},
		"withdrawal": {v1alpha1.RequestOpen, stamp(noon) + "/0s", v1alpha1.RequestWithdrawnReason},
		"unusable":   {v1alpha1.RequestClose, "yesterday", v1alpha1.RequestRefusedReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			ask(t, g, v1alpha1.RequestClose, stamp(noon.Add(-time.Hour)), "alice", noon.Add(-time.Hour))
			annotate(g, tc.action, tc.value)
			handled := handle(g, noon)
			d := gate.Decide(g, noon)
			gate.RecordHistory(g, d, handled, noon, false)
			if len(handled) != 1 || handled[0].EventReason() != tc.want || g.Status.History[0].Reason != tc.want {
				t.Errorf("%v, history %+v, want %s", handled, g.Status.History, tc.want)
			}
		})
	}
}
