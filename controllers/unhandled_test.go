package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestCrashAfterAnyWriteHandlesLinesOnce(t *testing.T) {
	for n := range enough {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")}})
		w.Reconcile(g)
		at := w.In(hours(1)).UTC().Format(time.RFC3339)
		w.Annotate(g, v1alpha1.UnhandledAnnotation, fmt.Sprintf("1\tclose\tannotation\t%s/2h\talice\tincident", at), v1alpha1.CloseRequestedAtAnnotation, at+"/10s", v1alpha1.CloseRequestedByAnnotation, "carl")
		w.Writes.Before = crashing(n)
		_, err := w.Try(g)
		w.Writes.Reset()
		w.ResetState()
		w.In(hours(1) + time.Minute) // the second close has ended
		w.Reconcile(g)
		w.ExpectHeld(app, g)
		if g.Annotations[v1alpha1.UnhandledAnnotation] != "" || g.Status.Memory.LastHandledLine != 1 {
			t.Errorf("annotations %v, last line %d", g.Annotations, g.Status.Memory.LastHandledLine)
		}
		named := 0
		for _, e := range g.Status.History {
			if e.RequestedBy == "alice" {
				named++
			}
		}
		if named != 1 {
			t.Errorf("the history names alice %d times: %+v", named, g.Status.History)
		}
		if t.Failed() {
			t.Fatalf("after a crash at write %d: %v", n, err)
		}
		if err == nil {
			return
		}
	}
	t.Errorf("more than %d writes", enough)
}

// unlistable is a reader of targets that cannot list any.
type unlistable struct{ view.TargetReader }

func (unlistable) Naming(context.Context, string) ([]*target.Object, error) {
	return nil, errBroken
}

func TestLinesAreRemovedIfOnlyTheProgressOfTargetsIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.Targets = unlistable{w.Targets}
	w.Annotate(g, v1alpha1.UnhandledAnnotation, "1\topen\tannotation\ttomorrow\talice\ttypo", fluxmeta.ReconcileRequestAnnotation, "now")
	if _, err := w.Reconcilers().Gates.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)}); !errors.Is(err, errBroken) {
		t.Fatalf("the progress is known: %v", err)
	}
	if g = w.GetGate(client.ObjectKeyFromObject(g)); g.Annotations[v1alpha1.UnhandledAnnotation] != "" || g.Status.Memory.LastHandledLine != 1 {
		t.Errorf("annotations %v, last line %d", g.Annotations, g.Status.Memory.LastHandledLine)
	}
}

// After a start, a ConfigMap may not be readable for a while.
func TestOnlyOpenWaitsForCalendars(t *testing.T) {
	unreadable := func(w *world) {
		w.ResetState()
		w.APIReader = interceptor.NewClient(cluster.Client, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*corev1.ConfigMap); ok {
					return apierrors.NewInternalError(errors.New("disk full"))
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
	}
	for name, tc := range map[string]struct {
		spec    v1alpha1.GateSpec
		request func(*world, *v1alpha1.Gate)
		held    bool
	}{
		"a close": {v1alpha1.GateSpec{Default: v1alpha1.StateOpened}, func(w *world, g *v1alpha1.Gate) { w.Close(g, w.In(hours(1))) }, true},
		"a close that is replaced": {v1alpha1.GateSpec{Default: v1alpha1.StateOpened}, func(w *world, g *v1alpha1.Gate) {
			w.Annotate(g, v1alpha1.UnhandledAnnotation, "1\tclose\tannotation\t"+w.In(hours(1)).Format(time.RFC3339)+"\talice\t")
		}, true},
		"an open": {v1alpha1.GateSpec{Default: v1alpha1.StateClosed}, func(w *world, g *v1alpha1.Gate) { w.Open(g, w.In(hours(1))) }, true},
		"an open after a close": {v1alpha1.GateSpec{Default: v1alpha1.StateClosed}, func(w *world, g *v1alpha1.Gate) {
			w.Close(g, w.In(hours(1)))
			w.Open(g, w.In(hours(2)))
		}, true},
		"no request": {v1alpha1.GateSpec{Default: v1alpha1.StateOpened}, func(*world, *v1alpha1.Gate) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.days(holiday("20271225", "Day"))
			app := w.NewKustomization("apps", nil)
			tc.spec.Targets = []v1alpha1.TargetReference{named("apps")}
			tc.spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: calendar("holidays")}}
			g := w.GateIn(w.Namespace, "shop", tc.spec)
			w.Reconcile(g)
			reader := w.APIReader
			unreadable(w)
			tc.request(w, g)
			if _, err := w.Try(g); err == nil {
				t.Error("the calendar was read")
			}
			want := metav1.ConditionTrue
			if tc.held {
				want = metav1.ConditionFalse
			}
			if opened := conditions.Get(g, v1alpha1.OpenedCondition); opened.Status != want {
				t.Errorf("it is %+v", opened)
			}
			if held := w.Suspension(app).Suspend == true; held != tc.held {
				t.Errorf("the target is held: %t", held)
			}
			w.APIReader = reader
			w.Reconcile(g)
			if failures := g.Status.TargetFailures(); len(failures) > 0 {
				t.Errorf("once the calendar is read there is still %+v", failures)
			}
		})
	}
}
