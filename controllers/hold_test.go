package controllers_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// moment is the expected state of a Gate at a time after start.
type moment struct {
	at     time.Duration
	do     func(*world, *v1alpha1.Gate)
	state  v1alpha1.State
	reason string
	// requeue is the delay of the next reconciliation.
	requeue time.Duration
}

func hours(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

func dated(name string, from, until time.Duration) v1alpha1.Period {
	return v1alpha1.Period{Name: name, From: v1alpha1.NewDateTime(start.Add(from)), Until: v1alpha1.NewDateTime(start.Add(until))}
}

func duration(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }

func TestTargetIsHeldAndReleasedByGate(t *testing.T) {
	open := func(w *world, g *v1alpha1.Gate) { w.Open(g, w.FakeClock.Now()) }
	planned := func(w *world, g *v1alpha1.Gate) { w.Open(g, start.Add(hours(2))) }
	const slow = 24 * time.Hour
	for name, tc := range map[string]struct {
		spec    v1alpha1.GateSpec
		moments []moment
	}{
		"a short window ends and the gate closes by itself": {v1alpha1.GateSpec{Default: "closed", Window: duration(time.Minute)}, []moment{
			{state: "closed", reason: "Default", requeue: slow},
			{at: hours(1), do: open, state: "opened", reason: "OpenRequested", requeue: time.Minute},
			{at: hours(1) + 59*time.Second, state: "opened", reason: "OpenRequested", requeue: time.Second},
			{at: hours(1) + time.Minute, state: "closed", reason: "Default", requeue: slow},
		}},
		"a planned release": {v1alpha1.GateSpec{Default: "closed", Window: duration(hours(1))}, []moment{
			{do: planned, state: "closed", reason: "Default", requeue: hours(2)},
			{at: hours(2) - time.Second, state: "closed", reason: "Default", requeue: time.Second},
			{at: hours(2), state: "opened", reason: "OpenRequested", requeue: hours(1)},
			{at: hours(3), state: "closed", reason: "Default", requeue: slow},
		}},
		"openPeriods": {v1alpha1.GateSpec{Default: "closed", TimeZone: "Europe/Oslo", OpenPeriods: []v1alpha1.Period{
			{Name: "nights", DaysOfWeek: []v1alpha1.DayOfWeek{"Monday"}, Start: ptr.To("22:00"), End: ptr.To("05:00")},
		}}, []moment{
			{state: "closed", reason: "OutsideOpenPeriods", requeue: hours(9)},
			{at: hours(9), state: "opened", reason: "OpenPeriod", requeue: hours(7)},
			{at: hours(16), state: "closed", reason: "OutsideOpenPeriods", requeue: slow},
		}},
		"a dated freeze": {v1alpha1.GateSpec{Default: "opened", ClosePeriods: []v1alpha1.ClosePeriod{
			{Period: dated("year-end", hours(1), hours(2)), Override: v1alpha1.OverrideDeny},
		}}, []moment{
			{state: "opened", reason: "OutsideClosePeriods", requeue: hours(1)},
			{at: hours(1), state: "closed", reason: "ClosePeriod", requeue: hours(1)},
			{at: hours(1.5), do: open, state: "closed", reason: "ClosePeriod", requeue: hours(0.5)},
			{at: hours(2), state: "opened", reason: "OpenRequested", requeue: slow},
		}},
		"the interval if that is sooner": {v1alpha1.GateSpec{Default: "opened", Interval: v1alpha1.Duration{Duration: time.Minute}, ClosePeriods: []v1alpha1.ClosePeriod{
			{Period: dated("freeze", hours(1), hours(2))},
		}}, []moment{
			{state: "opened", reason: "OutsideClosePeriods", requeue: time.Minute},
			{at: hours(1) - 59*time.Second, state: "opened", reason: "OutsideClosePeriods", requeue: 59 * time.Second},
			{at: hours(1), state: "closed", reason: "ClosePeriod", requeue: time.Minute},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			tc.spec.Targets = []v1alpha1.TargetReference{named("apps")}
			if tc.spec.Interval.Duration == 0 {
				tc.spec.Interval.Duration = slow
			}
			g := w.Gate("production", tc.spec)
			touched := false
			for _, m := range tc.moments {
				w.In(m.at)
				if m.do != nil {
					m.do(w, g)
				}
				result := w.Reconcile(g)
				opened := conditions.Get(g, v1alpha1.OpenedCondition)
				if (opened.Status == metav1.ConditionTrue) != (m.state == "opened") || opened.Reason != m.reason {
					t.Errorf("after %s: Opened is %s, %s (%s); want %s, %s", m.at, opened.Status, opened.Reason, opened.Message, m.state, m.reason)
				}
				if want := (ctrl.Result{RequeueAfter: m.requeue}); result != want {
					t.Errorf("after %s: %v, want %v", m.at, result, want)
				}
				switch {
				case m.state == "closed":
					touched = true
					w.ExpectHeld(app, g)
				case touched:
					w.ExpectReleased(app, g)
				default:
					w.ExpectUntouched(app)
				}
			}
		})
	}
}

func TestHoldAndReleaseRestoreObject(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", map[string]string{"tier": "critical"})
	before := w.Reload(app).DeepCopy()
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.Open(g, start)
	w.Reconcile(g)
	after := w.Reload(app)
	for _, o := range []interface {
		SetResourceVersion(string)
		SetGeneration(int64)
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}{before, after} {
		o.SetResourceVersion("")
		o.SetGeneration(0)
		o.SetManagedFields(nil)
	}
	delete(before.Object, "status")
	delete(after.Object, "status")
	equal(t, after.Object, before.Object)
	// Only the metadata of responses is read, because decoding thousands of objects takes long.
	equal(t, w.Writes.Take("Kustomization/apps"), []string{
		"apply Kustomization/apps", "patch-status Kustomization/apps", "apply Kustomization/apps", "patch-status Kustomization/apps",
	})
	equal(t, w.Writes.Whole, []string(nil))
}
