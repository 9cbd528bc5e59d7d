package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	targetcontroller "github.com/fluxcd/gating-controller/controllers/target"
	"github.com/fluxcd/gating-controller/internal/slots"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// pacedWorld returns a world with a closed Gate that holds three targets in one namespace and one in another, and releases two per minute.
func pacedWorld(t *testing.T) (*world, *v1alpha1.Gate, []*target.Object) {
	t.Helper()
	w := reaching(t)
	namespaces := []string{w.Namespace, w.NewNamespace()}
	slices.Sort(namespaces) // namespaces take turns in the order of their names
	var apps []*target.Object
	for _, name := range []string{"a", "b", "c"} {
		apps = append(apps, w.NewKustomizationIn(namespaces[0], name, nil))
	}
	apps = append(apps, w.NewKustomizationIn(namespaces[1], "d", nil))
	here, there := all(), all()
	here.Namespace, there.Namespace = namespaces[0], namespaces[1]
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: time.Hour},
		Targets: []v1alpha1.TargetReference{here, there}, Release: &v1alpha1.ReleasePolicy{PerMinute: 2},
	})
	w.Reconcile(g)
	w.expectHeldOf(apps, "abcd")
	return w, g, apps
}

// expectHeldOf checks that of the given targets, exactly those with the given names are held.
func (w *world) expectHeldOf(apps []*target.Object, names string) {
	w.Helper()
	var held []string
	for _, app := range apps {
		if w.Suspended(app) {
			held = append(held, app.GetName())
		}
	}
	slices.Sort(held)
	if got := strings.Join(held, ""); got != names {
		w.Errorf("held are %q, want %q", got, names)
	}
}

func (w *world) expectRelease(g *v1alpha1.Gate, want string) {
	w.Helper()
	got := "none"
	if r := g.Status.Release; r != nil {
		got = fmt.Sprintf("%d of %d", r.Released, r.Total)
		if r.NextAt != nil {
			got += fmt.Sprintf(", next after %s", r.NextAt.Sub(start))
		}
	}
	if got += fmt.Sprintf(", %d held", g.Status.Targets.Held); got != want {
		w.Errorf("the release is %q, want %q", got, want)
	}
}

func TestPerMinuteLimitsReleases(t *testing.T) {
	w, g, apps := pacedWorld(t)
	w.expectRelease(g, "none, 4 held")
	w.In(time.Minute)
	w.request(g, "open", w.FakeClock.Now(), "alice", "release")
	held := "abcd"
	w.Events.Take("")
	for _, tc := range []struct {
		at            time.Duration
		held, release string
		requeue       time.Duration
	}{
		{time.Minute, "bcd", "1 of 4, next after 1m30s, 3 held", 30 * time.Second},
		{time.Minute + 10*time.Second, "bcd", "1 of 4, next after 1m30s, 3 held", 20 * time.Second},
		{time.Minute + 30*time.Second, "bc", "2 of 4, next after 2m0s, 2 held", 30 * time.Second},
		{2*time.Minute + time.Second, "c", "3 of 4, next after 2m30s, 1 held", 29 * time.Second},
		{2*time.Minute + 30*time.Second, "", "4 of 4, 0 held", 58*time.Minute + 30*time.Second},
		{3 * time.Minute, "", "4 of 4, 0 held", 58 * time.Minute},
	} {
		w.In(tc.at)
		if result := w.Reconcile(g); result.RequeueAfter != tc.requeue {
			t.Errorf("after %s: requeue after %s, want %s", tc.at, result.RequeueAfter, tc.requeue)
		}
		w.expectHeldOf(apps, tc.held)
		w.expectRelease(g, tc.release)
		if tc.held == held {
			expectNone(t, w.Events.Take(" GateOpened: "))
		} else { // the event names the requester
			event := w.Events.TakeMetadata(t, " GateOpened: ", ksGroup)
			equal(t, event["requestedBy"]+" "+event["message"]+" "+event["gate"], "alice release "+key(g))
		}
		held = tc.held
	}
	w.In(time.Hour)
	w.Close(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.expectHeldOf(apps, "abcd")
	w.expectRelease(g, "4 of 4, 4 held")

	// A Gate that closes during a release holds all targets. The other namespace has its turn first, however often the Gate closes.
	for _, held := range []string{"abc", "bcd"} {
		at := w.In(w.FakeClock.Now().Sub(start) + time.Hour)
		w.Open(g, at)
		w.Reconcile(g)
		w.expectHeldOf(apps, held)
		w.Close(g, w.In(at.Sub(start)+10*time.Second))
		w.Reconcile(g)
		w.expectHeldOf(apps, "abcd")
		w.expectRelease(g, "1 of 4, 4 held")
	}
}

func TestUnreleasableTargetStopsNoOther(t *testing.T) {
	for name, spoil := range map[string]func(*world, *target.Object){
		"under deletion": func(w *world, app *target.Object) {
			w.PatchAsFlux(app, `{"metadata":{"finalizers":["example.com/stuck"]}}`)
			w.Must(cluster.Client.Delete(w.Context(), &w.Reload(app).Unstructured))
		},
		"refused": func(w *world, app *target.Object) {
			w.Writes.Before = func(write string) error {
				if strings.HasSuffix(write, "Kustomization/"+app.GetName()) {
					return errBroken
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g, apps := pacedWorld(t)
			spoil(w, apps[0])
			w.Open(g, start)
			for i := range 8 {
				w.In(time.Duration(i) * 30 * time.Second)
				_, _ = w.Try(g)
			}
			w.expectHeldOf(apps, "a")
		})
	}
}

func TestReleaseAfterRestartAndWithoutPerMinute(t *testing.T) {
	for name, change := range map[string]func(*world, *v1alpha1.Gate){
		"the pace is removed": func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.Release = nil }) },
		"the gate is deleted": func(w *world, g *v1alpha1.Gate) { w.Must(w.Delete(w.Context(), g)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g, apps := pacedWorld(t)
			w.Open(g, start)
			w.Reconcile(g)
			w.expectHeldOf(apps, "bcd")
			w.In(time.Hour) // missed slots are not made up for
			w.restart()
			w.Reconcile(g)
			w.expectHeldOf(apps, "bc")
			w.expectRelease(g, "2 of 4, next after 1h0m28s, 2 held")
			change(w, g)
			w.Reconcile(g)
			w.expectHeldOf(apps, "")
		})
	}
}

func TestSlotLostBeforeWriteReleasesNothing(t *testing.T) {
	t.Parallel()
	w, g, apps := pacedWorld(t)
	w.Open(g, start)
	w.Reconcile(g)
	w.expectHeldOf(apps, "bcd")
	r, waiting := w.Reconcilers().Targets, target.KeyOf(apps[1])
	called, _ := w.State.Slots.Call(g.UID, 1, "", slots.Eligible[target.Key]{Some: map[target.Key]bool{waiting: true}})
	obj, err := w.Targets.Get(w.Context(), waiting)
	w.Must(err)
	gates, err := r.Gates.For(w.Context(), obj, start)
	w.Must(err)
	ruling, err := r.Rule(w.Context(), obj, gates, start)
	w.Must(err)
	if !ruling.Releases() || len(ruling.Slots) != 1 {
		t.Fatalf("%+v", ruling.Step)
	}
	w.State.Slots.Recall(g.UID, called)
	if res, err := r.Apply(w.Context(), targetcontroller.Result{Result: summary.Result{Ruling: ruling, Gates: gates}}); !targetcontroller.IsOutdated(err) || res.Wrote {
		t.Errorf("wrote is %t, error %v", res.Wrote, err)
	}
	w.expectHeldOf(apps, "bcd")
	if _, err := r.Reconcile(w.Context(), waiting); err != nil { // the pass is repeated, and the target waits again
		t.Error(err)
	}
	w.expectHeldOf(apps, "bcd")
}
