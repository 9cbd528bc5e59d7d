package controllers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// holiday returns a calendar with an event on a day, such as 20261123.
func holiday(day, summary string) string {
	return "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:" + day + "\nSUMMARY:" + summary + "\nEND:VEVENT\nEND:VCALENDAR\n"
}

// days creates a ConfigMap with a file.
func (w *world) days(text string) *corev1.ConfigMap {
	w.Helper()
	days := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "days", Namespace: w.Namespace}, Data: map[string]string{"no.ics": text}}
	w.Must(cluster.Client.Create(w.Context(), days))
	return days
}

// change writes another file.
func (w *world) change(days *corev1.ConfigMap, text string) {
	w.Helper()
	days.Data["no.ics"] = text
	w.Must(cluster.Client.Update(w.Context(), days))
}

// frozenGate creates a Gate that is open except on the days of a calendar.
func (w *world) frozenGate(name string, targets ...v1alpha1.TargetReference) *v1alpha1.Gate {
	w.Helper()
	return w.GateIn(w.Namespace, name, v1alpha1.GateSpec{Default: "opened", Targets: targets, ClosePeriods: []v1alpha1.ClosePeriod{{Period: calendar("holidays")}}})
}

func calendar(name string) v1alpha1.Period {
	return v1alpha1.Period{Name: name, Calendar: &v1alpha1.CalendarReference{ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}}}
}

// expectMessageOf checks the status and the message of the condition Opened.
func (w *world) expectMessageOf(g *v1alpha1.Gate, status metav1.ConditionStatus, want string) {
	w.Helper()
	opened := conditions.Get(g, v1alpha1.OpenedCondition)
	if got := strings.ReplaceAll(opened.Message, w.Namespace, "NS"); opened.Status != status || got != want {
		w.Errorf("got  %s %q\nwant %s %q", opened.Status, got, status, want)
	}
}

const freely = "Gate opened outside its close periods"

func TestChangedCalendarTakesEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	days, app := w.days(holiday("20271225", "Christmas")), w.NewKustomization("apps", nil)
	g := w.frozenGate("shop", named("apps"))
	w.Reconcile(g)
	w.expectMessageOf(g, metav1.ConditionTrue, freely+", scheduled for closing at 2027-12-25T00:00:00Z by 'holidays' (Christmas)")
	w.ExpectUntouched(app)

	w.change(days, holiday("20261123", "Labour Day"))
	w.Reconcile(g)
	w.expectMessageOf(g, metav1.ConditionFalse, "Gate closed by close period 'holidays' (Labour Day), scheduled for opening at 2026-11-24T00:00:00Z")
	w.ExpectHeld(app, g)
	if by := g.Status.LastTransition.Period; by != "holidays" {
		t.Errorf("it is by %q", by)
	}

	w.change(days, holiday("20271225", "Christmas"))
	w.Reconcile(g)
	w.expectMessageOf(g, metav1.ConditionTrue, freely+", scheduled for closing at 2027-12-25T00:00:00Z by 'holidays' (Christmas)")
	w.ExpectReleased(app, g)
}

// Calendars are expanded only some time ahead, so their Gates are reconciled each day, with or without dependencies.
func TestGateWithCalendarIsReconciledDaily(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.days(holiday("20281124", "Later"))
	for name, watch := range map[string][]v1alpha1.DependencyReference{"alone": nil, "watching": {staging()}} {
		g := w.GateIn(w.Namespace, name, v1alpha1.GateSpec{
			Default: "closed", Interval: v1alpha1.Duration{Duration: hours(72)}, DependsOn: watch, ClosePeriods: []v1alpha1.ClosePeriod{{Period: calendar("holidays")}},
		})
		w.In(hours(1))
		w.Reconcile(g)
		w.In(hours(1))
		if again := w.Reconcile(g).RequeueAfter; again > hours(24) || again < hours(23) {
			t.Errorf("%s: it is requeued after %s", name, again)
		}
	}
	w.In(0)
	g := w.frozenGate("shop")
	w.Reconcile(g)
	if next := g.Status.NextTransition; next != nil {
		t.Errorf("more than two years ahead: %v", next)
	}
	w.In(hours(24))
	w.Reconcile(g)
	if next := g.Status.NextTransition; next == nil || next.At.UTC().Format(time.RFC3339) != "2028-11-24T00:00:00Z" {
		t.Errorf("a day later: %v", next)
	}
}

func TestCalendarFaultClosesAndIsReported(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "days", errors.New("no"))
	denied := client.Reader(interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return forbidden
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}))
	for name, tc := range map[string]struct {
		breaks func(*world, *corev1.ConfigMap)
		cause  string
	}{
		"gone": {func(w *world, days *corev1.ConfigMap) {
			w.Must(cluster.Client.Delete(w.Context(), days))
		}, "does not exist"},
		"without its key": {func(w *world, days *corev1.ConfigMap) {
			days.Data = map[string]string{"se.ics": ""}
			w.Must(cluster.Client.Update(w.Context(), days))
		}, "does not exist in the ConfigMap"},
		"an event in line 3 that cannot be read": {func(w *world, days *corev1.ConfigMap) {
			w.change(days, strings.Replace(holiday("20271225", "Christmas"), "UID:1\n", "UID:1\nRRULE:FREQ=SECONDLY\n", 1))
		}, "line 5: "},
		"out of reach": {func(w *world, _ *corev1.ConfigMap) { w.APIReader = denied },
			"the controller may not read it, install config/calendars or give it a Role"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			days, app := w.days(holiday("20271225", "Christmas")), w.NewKustomization("apps", nil)
			g := w.frozenGate("shop", named("apps"))
			w.Reconcile(g)
			w.ExpectUntouched(app)

			tc.breaks(w, days)
			w.Reconcile(g)
			w.ExpectHeld(app, g)
			opened := conditions.Get(g, v1alpha1.OpenedCondition)
			told := "Gate closed by close period 'holidays', whose calendar cannot be read: ConfigMap " + w.Namespace + "/days, key no.ics: " + tc.cause
			if opened.Reason != v1alpha1.ClosePeriodReason || !strings.HasPrefix(opened.Message, told) || conditions.IsStalled(g) {
				t.Errorf("got  %s %q, stalled %t\nwant %q", opened.Reason, opened.Message, conditions.IsStalled(g), told)
			}
			if f := g.Status.TargetFailures(); len(f) != 1 || f[0].Kind != "ConfigMap" || f[0].Namespace != w.Namespace || f[0].Name != "days" ||
				f[0].Reason != v1alpha1.CalendarFailedReason || !strings.HasPrefix(f[0].Message, "key no.ics: "+tc.cause) || g.Status.Targets.Failed != 1 {
				t.Errorf("failures %+v of %+v", f, g.Status.Targets)
			}
			if ready := conditions.Get(g, meta.ReadyCondition); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, tc.cause) {
				t.Errorf("ready %+v", ready)
			}

			w.APIReader = cluster.Client
			_ = cluster.Client.Delete(w.Context(), days) // it may be gone
			w.days(holiday("20271225", "Christmas"))
			w.Reconcile(g)
			w.ExpectReleased(app, g)
			if len(g.Status.TargetFailures()) > 0 || !conditions.IsTrue(g, meta.ReadyCondition) {
				t.Errorf("failures %+v", g.Status.TargetFailures())
			}
		})
	}
}

func TestMissingCalendarKeepsState(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		day       string
		isOpened  bool
		restarted bool
	}{
		"an open gate stays open, also after a restart":     {"20271225", true, true},
		"a closed gate stays closed, also after a restart":  {"20261123", false, true},
		"an open gate stays open for what was read before":  {"20271225", true, false},
		"a closed gate stays closed for what was read then": {"20261123", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.days(holiday(tc.day, "Day"))
			app := w.NewKustomization("apps", nil)
			g := w.frozenGate("shop", named("apps"))
			w.Reconcile(g)
			before := g.DeepCopy()
			if tc.restarted {
				w.ResetState()
			}
			w.APIReader = interceptor.NewClient(cluster.Client, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if _, ok := obj.(*corev1.ConfigMap); ok {
						return apierrors.NewInternalError(errors.New("disk full"))
					}
					return c.Get(ctx, key, obj, opts...)
				},
			})
			_, err := w.Try(g)
			if failed := err != nil && strings.Contains(err.Error(), "disk full"); failed != tc.restarted {
				t.Errorf("the error is %v", err)
			}
			equal(t, conditions.Get(g, v1alpha1.OpenedCondition), conditions.Get(before, v1alpha1.OpenedCondition))
			equal(t, g.Status.NextTransition, before.Status.NextTransition)
			if held := w.Suspension(app).Suspend == true; held == tc.isOpened {
				t.Errorf("the target is held: %t", held)
			}
		})
	}
}

func TestCalendarIsSharedUntilUnused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.days(holiday("20261123", "Labour Day"))
	a, b := w.frozenGate("a"), w.frozenGate("b")
	w.Reconcile(a)
	w.Reconcile(b)
	for _, g := range []*v1alpha1.Gate{a, b} {
		w.expectMessageOf(g, metav1.ConditionFalse, "Gate closed by close period 'holidays' (Labour Day), scheduled for opening at 2026-11-24T00:00:00Z")
	}
	r := w.State.Calendars
	if n := len(r.Followed); n != 1 {
		t.Fatalf("%d ConfigMaps are followed", n)
	}
	for _, f := range r.Followed {
		if len(f.Gates) != 2 || len(f.Read) != 1 {
			t.Errorf("%d Gates read %d calendars", len(f.Gates), len(f.Read))
		}
	}
	r.Queues = w.Queues
	w.Queues.Clear()
	r.Changed(client.ObjectKey{Namespace: w.Namespace, Name: "days"})
	if !w.Queues.TakeGate(client.ObjectKeyFromObject(a)) || !w.Queues.TakeGate(client.ObjectKeyFromObject(b)) {
		t.Error("not all are woken")
	}
	a.Spec.ClosePeriods = nil
	w.Must(cluster.Client.Update(w.Context(), a))
	w.Reconcile(a)
	w.expectMessageOf(a, metav1.ConditionTrue, "Gate opened by default")
	w.Must(cluster.Client.Delete(w.Context(), b))
	w.Reconcile(b)
	if n := len(r.Followed); n != 0 {
		t.Errorf("%d ConfigMaps are followed in the end", n)
	}
}

func TestExceptionHasLeadOfCalendar(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.days(holiday("20261123", "Labour Day"))
	g := w.GateIn(w.Namespace, "production", v1alpha1.GateSpec{Default: "closed", OpenPeriods: []v1alpha1.Period{calendar("holidays")}})
	e := w.exception("hotfix", closingIt, 0, hours(2), func(e *v1alpha1.GateException) { e.Spec.LeadTime = duration(hours(1)) })
	result, err := w.tryException(e)
	w.Must(err)
	if active := conditions.Get(e, v1alpha1.ActiveCondition); active != nil || result.RequeueAfter != time.Second {
		t.Errorf("before the Gate has read its calendars: %+v, %v", active, result)
	}
	w.Reconcile(g)
	_, err = w.tryException(e)
	w.Must(err)
	if active := conditions.Get(e, v1alpha1.ActiveCondition); active == nil || active.Reason != v1alpha1.InForceReason {
		t.Errorf("active %+v", active)
	}
}

func TestManagerFollowsCalendars(t *testing.T) {
	w := newWorld(t)
	w.startManagerByItsClock()
	app := w.NewKustomization("apps", nil)
	g := w.frozenGate("shop", named("apps"))
	w.soonHeld(app, g)
	days := w.days(holiday("20271225", "Christmas"))
	w.soonFree(app)
	w.change(days, holiday("20261123", "Labour Day"))
	w.soonHeld(app, g)
	w.change(days, holiday("20271225", "Christmas"))
	w.soonFree(app)
	w.Must(cluster.Client.Delete(w.Context(), days))
	w.soonHeld(app, g)
	w.soonStatus(g, "the failure is told", func(g *v1alpha1.Gate) bool {
		return slices.ContainsFunc(g.Status.TargetFailures(), func(f v1alpha1.TargetFailure) bool { return f.Reason == v1alpha1.CalendarFailedReason })
	})
	w.days(holiday("20271225", "Christmas"))
	w.soonFree(app)
}
