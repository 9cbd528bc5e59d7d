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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// ConfigMaps of calendars cannot be read after a restart: the last decisions stay in force.
func TestUnreadCalendarKeepsStateAfterRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.days(holiday("20261123", "Labour Day"))
	app, other := w.NewKustomization("apps", nil), w.NewKustomization("other", nil)
	shut := w.frozenGate("shop", named("apps"))
	open := w.GateIn(w.Namespace, "production", v1alpha1.GateSpec{
		Default: "closed", Targets: []v1alpha1.TargetReference{named("other")}, OpenPeriods: []v1alpha1.Period{calendar("holidays")},
	})
	e := w.exception("hotfix", closingIt, hours(1), hours(2), func(e *v1alpha1.GateException) { e.Spec.LeadTime = duration(hours(1)) })
	live := w.APIReader
	unread := interceptor.NewClient(cluster.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.ConfigMap); ok {
				return apierrors.NewInternalError(errors.New("disk full"))
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	w.Reconcile(shut)
	w.Reconcile(open)
	w.ResetState()
	w.APIReader = unread
	for _, g := range []*v1alpha1.Gate{shut, open} {
		before := g.DeepCopy()
		if _, err := w.Try(g); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("the error is %v", err)
		}
		equal(t, g.Status, before.Status)
	}
	w.ExpectHeld(app, shut)
	w.ExpectUntouched(other)
	// The effect of the exception depends on the calendar.
	result, err := w.tryException(e)
	w.Must(err)
	if active := conditions.Get(e, v1alpha1.ActiveCondition); active != nil || result.RequeueAfter != time.Second {
		t.Errorf("before the Gate has read its calendars: %+v, %v", active, result)
	}
	w.APIReader = live
	w.Reconcile(open)
	w.reportOn(e)
	if active := conditions.Get(e, v1alpha1.ActiveCondition); active == nil {
		t.Error("afterwards, the exception has no condition")
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
