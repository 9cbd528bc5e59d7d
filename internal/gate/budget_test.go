package gate_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// restless returns a Gate whose hundred periods all have two edges in every two minutes.
func restless(edits ...func(*v1alpha1.GateSpec)) *v1alpha1.Gate {
	var open []v1alpha1.Period
	var shut []v1alpha1.ClosePeriod
	for i := range v1alpha1.MaxPeriods / 2 {
		open = append(open, cron(fmt.Sprintf("w%d", i), "*/2 * * * *", time.Minute))
		shut = append(shut, closing(cron(fmt.Sprintf("c%d", i), "*/2 * * * *", time.Minute), ""))
	}
	return production(closed(append([]func(*v1alpha1.GateSpec){windows(open...), closePeriods(shut...)}, edits...)...))
}

// restlessExceptions returns exceptions that are all in force at noon, with as many windows as they may have.
func restlessExceptions(n int) (all []*v1alpha1.GateException) {
	for i := range n {
		var periods []v1alpha1.Period
		for w := range v1alpha1.MaxPeriods {
			periods = append(periods, cron(fmt.Sprintf("w%d", w), "1-59/2 * * * *", time.Minute))
		}
		e := exception(called(fmt.Sprintf("x%02d", i)), closesIn(periods...), lead(time.Hour))
		e.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i) * time.Minute))
		e.Spec.ValidFrom, e.Spec.ValidUntil = metav1.NewTime(noon.Add(-time.Duration(i)*time.Hour)), metav1.NewTime(noon.AddDate(0, 0, 80))
		all = append(all, e)
	}
	return all
}

func TestGateOverBudgetIsRechecked(t *testing.T) {
	unknown := ", next transition unknown, because the schedule changes too often: use fewer or longer periods"
	g := restless()
	for name, tc := range map[string]struct {
		exceptions []*v1alpha1.GateException
		reason     string
	}{
		"its periods":                {nil, "ClosePeriod"},
		"its periods and exceptions": {restlessExceptions(v1alpha1.MaxEffectiveExceptions), "Exception"},
		"too many exceptions":        {restlessExceptions(200), "Exception"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			d := gate.Decide(g, noon, tc.exceptions...)
			t.Log(time.Since(start))
			if d.State != isClosed || d.Reason != tc.reason || d.Next != nil || !strings.Contains(d.Message, unknown) {
				t.Errorf("%+v", d)
			}
			if !d.Recheck.After(noon) || d.Recheck.After(noon.AddDate(0, 0, 90)) {
				t.Errorf("it is checked again at %s", d.Recheck)
			}
		})
	}
}

// TestExceptionsOverLimitAreBroken has exceptions of a Gate that is open by default, each for an hour of its own, in
// the second half of which it closes the Gate.
// Exceptions that only close need no approval, so their author needs no right to open.
func TestManyClosingExceptionsBreakNoOther(t *testing.T) {
	g, all := production(closed()), []*v1alpha1.GateException(nil)
	for i := range v1alpha1.MaxEffectiveExceptions + 2 {
		e := exception(called(fmt.Sprintf("x%02d", i)), closesIn(dated("second", "2026-12-24T00:00:00Z", "2026-12-24T00:00:01Z")))
		e.Spec.ValidFrom, e.Spec.ValidUntil = metav1.NewTime(noon.AddDate(0, 0, 30+i)), metav1.NewTime(noon.AddDate(0, 0, 31+i))
		e.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		all = append(all, e)
	}
	hotfix := exception(called("hotfix"), opensIn(dated("now", stamp(noon), stamp(noon.Add(time.Hour)))))
	hotfix.Spec.ValidFrom, hotfix.Spec.ValidUntil = metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	hotfix.CreationTimestamp = metav1.NewTime(noon)
	all = append(all, hotfix)
	if d := gate.Decide(g, noon, all...); d.State != isOpened || d.By != "hotfix" {
		t.Errorf("the gate is %s: %s", d.State, d.Message)
	}
}

func TestExceptionsOverLimitAreBroken(t *testing.T) {
	const n = v1alpha1.MaxEffectiveExceptions + 3
	g := production(opened())
	var all []*v1alpha1.GateException
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Hour) }
	for i := range n {
		begin := at(i)
		e := exception(called(fmt.Sprintf("x%02d", n-i)), closesIn(dated("second", stamp(begin.Add(30*time.Minute)), stamp(begin.Add(time.Hour)))))
		e.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i-n) * time.Second))
		e.Spec.ValidFrom, e.Spec.ValidUntil = metav1.NewTime(begin), metav1.NewTime(begin.Add(time.Hour))
		all = append(all, e)
	}
	for i, e := range all {
		first := gate.Decide(g, noon, all...).State // the first is over later
		d := gate.DecideException(e, g, all, noon)
		intervals, _ := gate.Intervals(g, noon, at(n), all...)
		state := v1alpha1.State("")
		for interval := range intervals {
			if !interval.From.After(at(i).Add(time.Minute)) && interval.Until.After(at(i).Add(time.Minute)) {
				state = v1alpha1.State(interval.State.String())
			}
		}
		want, reason := isOpened, v1alpha1.PendingReason
		if i == 0 {
			reason = v1alpha1.InForceReason
		}
		if i >= v1alpha1.MaxEffectiveExceptions {
			want, reason = isClosed, v1alpha1.TooManyExceptionsReason
		}
		if first != isOpened || state != want || d.Reason != reason || (d.TooMany != "") != (want == isClosed) {
			t.Errorf("exception %d: %s, want %s; %+v", i, state, want, d)
		}
	}
	last := all[n-1]
	if d := gate.DecideException(last, g, all, noon); !strings.Contains(d.Message, "Exception exceeds the limit: 20 other exceptions of gate 'flux-system/production' have not ended") {
		t.Error(d.Message)
	}
	if d := gate.DecideException(last, g, all, at(3)); d.Reason != v1alpha1.PendingReason || d.TooMany != "" {
		t.Errorf("three exceptions are over: %+v", d)
	}
	g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 1}}
	last.Spec.Default = isOpened
	if d := gate.DecideException(last, g, all, noon); d.Reason != v1alpha1.WaitingApprovalReason {
		t.Errorf("an exception that waits for approval takes nobody's place: %+v", d)
	}
}

// TestChangeBeyondSearchStaysAnnounced has a Gate that changes too often for the search to reach a change that was announced
// before.
func TestChangeBeyondSearchStaysAnnounced(t *testing.T) {
	freeze := closing(dated("freeze", "2026-12-20T18:00:00Z", "2026-12-21T18:00:00Z"), "")
	g := production(opened(closePeriods(freeze), notified(720*time.Hour)))
	if got, want := foretold(g, noon), "closed at 20 18:00 in 654h0m0s; opened at 21 18:00 in 678h0m0s; next never"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	busy := restless().Spec.OpenPeriods
	g.Spec.Default, g.Spec.OpenPeriods = isClosed, nil
	for i, w := range busy {
		w.Schedule, w.Duration = &[]string{"*/2 * * * *", "1-59/2 * * * *"}[i%2], duration(time.Minute)
		g.Spec.OpenPeriods = append(g.Spec.OpenPeriods, w)
	}
	if d := gate.Decide(g, noon); d.State != isOpened || d.Next != nil {
		t.Fatalf("%+v", d)
	}
	for range 2 {
		got := foretold(g, noon)
		if strings.Contains(got, "not closed") || strings.Contains(got, "next never") || len(g.Status.Memory.Announced) != 2 {
			t.Errorf("%s; %v", got, g.Status.Memory.Announced)
		}
	}
}

// ofCategories returns a Gate whose hundred periods are events of the same file, each with a category of its own and one that all events
// have.
func ofCategories() *v1alpha1.Gate {
	var all []v1alpha1.ClosePeriod
	for i := range v1alpha1.MaxPeriods {
		all = append(all, closing(file(fmt.Sprintf("c%d", i), fmt.Sprint(i), "all"), ""))
	}
	return production(opened(closePeriods(all...)))
}

// everyHour is a small text with an event for each hour.
func everyHour() string {
	return ics("UID:1 DTSTART:20260101T000000Z DURATION:PT30M CATEGORIES:all SUMMARY:" + strings.Repeat("x", 80) + " RRULE:FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23")
}

// TestCalendarsOfGateShareBudget has the Gate whose calendars take the most, with as many exceptions as can take effect. All that is
// kept of it is at most 8 MiB.
func TestCalendarsOfGateShareBudget(t *testing.T) {
	text := everyHour()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g := ofCategories()
	calendars, exceptions := reading(g, text), restlessExceptions(v1alpha1.MaxEffectiveExceptions)
	decision := gate.NewSnapshot(g, calendars, exceptions...).Decide(noon)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if retained := int64(after.HeapAlloc) - int64(before.HeapAlloc); retained > 8<<20 {
		t.Errorf("%d bytes are retained", retained)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	broken := gate.NewSnapshot(g, calendars).Broken()
	if n := len(broken); n < 90 || n == v1alpha1.MaxPeriods || broken[0].Cause != timetable.ErrOverBudget.Error() || broken[n-1].Period != "c99" {
		t.Errorf("%d are broken, the first is %v", n, broken[:1])
	}
	at := utc("2026-11-23T12:45:00Z") // no event
	if d := gate.NewSnapshot(g, calendars).Decide(at); d.State != isClosed || !strings.Contains(d.Message, "exceeds the budget of the calendars of a Gate") {
		t.Errorf("%+v", d)
	}
	g.Spec.ClosePeriods = g.Spec.ClosePeriods[:1]
	if d := gate.NewSnapshot(g, reading(g, text)).Decide(at); d.State != isOpened || len(d.Broken) > 0 {
		t.Errorf("one period is within the budget: %+v", d)
	}
	runtime.KeepAlive(decision)
	runtime.KeepAlive(exceptions)
	runtime.KeepAlive(calendars)
}

func TestTextsOfGateShareBudget(t *testing.T) {
	var all []v1alpha1.ClosePeriod
	for i := range 3 {
		p := file(fmt.Sprintf("c%d", i))
		p.Calendar.ConfigMapRef.Key = fmt.Sprint(i)
		all = append(all, closing(p, ""))
	}
	g, reads := opened(closePeriods(all...)), 0
	text := ics("UID:1 DTSTART:20261101T000000Z DURATION:PT1H X-A:" + strings.Repeat("x", 600_000))
	calendars := timetable.ReadCalendars(g, noon, noon, func(string, string) (*timetable.Files, error) {
		reads++
		return &timetable.Files{Data: map[string]string{"0": text, "1": text, "2": text}}, nil
	})
	if broken := gate.NewSnapshot(g, calendars).Broken(); len(broken) != 2 || reads != 2 {
		t.Errorf("%d are broken after %d reads", len(broken), reads)
	}
}

// BenchmarkDecide decides on a Gate with a window for each night, as the yardstick, and on the largest Gate with as many exceptions as can
// take effect, whose periods begin and end all the time.
func BenchmarkDecide(b *testing.B) {
	for _, bc := range []struct {
		name       string
		gate       *v1alpha1.Gate
		exceptions []*v1alpha1.GateException
	}{
		{"nights", production(closed(windows(weekly("nights", "22:00", "05:00")))), nil},
		{"largest", restless(), restlessExceptions(v1alpha1.MaxEffectiveExceptions)},
	} {
		b.Run(bc.name, func(b *testing.B) {
			for b.Loop() {
				gate.Decide(bc.gate, noon, bc.exceptions...)
			}
		})
	}
}
