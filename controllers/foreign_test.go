package controllers_test

import (
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// userSuspended is the state of a target that only flux suspend has suspended.
var userSuspended = suspension{Suspend: true, Owners: []string{"flux"}}

func TestTargetsSuspendedByOthers(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeLenient} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			byUser, resumed, byGit := w.NewKustomization("by-user", nil), w.NewKustomization("resumed", nil), w.NewKustomization("by-git", nil)
			takenOver, alsoByGit := w.NewKustomization("taken-over", nil), w.NewKustomization("also-by-git", nil)
			w.Suspend(byUser)
			w.Suspend(resumed)
			w.Git(byGit, true)
			version := w.Reload(byUser).GetResourceVersion()
			g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Mode: mode, Targets: []v1alpha1.TargetReference{all()}})
			w.Reconcile(g)
			w.Expect(byUser, userSuspended)
			w.Expect(byGit, suspension{Suspend: true, Owners: []string{"kustomize-controller"}})
			equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 5, Held: 2, SuspendedByOthers: 3})

			// Other clients resume two of the targets, and suspend those that are held.
			w.Resume(resumed)
			w.Git(byGit)
			w.Resume(takenOver)
			w.Suspend(takenOver)
			w.Git(alsoByGit, true)
			w.Events.Take("")
			w.Reconcile(g)
			w.ExpectHeld(resumed, g)
			w.ExpectHeld(byGit, g)
			w.Expect(takenOver, suspension{Suspend: true, Owners: []string{"flux"}, Approved: "True Resumed Resumed and then suspended manually. Gates do not change it until it is resumed."})
			if got := w.Suspension(alsoByGit).Owners; len(got) != 2 {
				t.Errorf("owners of spec.suspend are %q", got)
			}
			equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 5, Held: 3, SuspendedByOthers: 2})
			if events := w.Events.Take("Warning"); len(events) > 0 {
				t.Errorf("no held target was resumed, but the events are %q", events)
			}

			check := func() {
				t.Helper()
				w.Expect(byUser, userSuspended)
				for obj, by := range map[*target.Object]string{takenOver: "flux", alsoByGit: "kustomize-controller"} {
					if got := w.Suspension(obj); got.Suspend != true || !slices.Equal(got.Owners, []string{by}) {
						t.Errorf("the gate resumed what %s suspended: %+v", by, got)
					}
				}
			}
			w.Open(g, w.In(hours(1)))
			w.Reconcile(g)
			check()
			w.ExpectReleased(resumed, g)
			w.ExpectReleased(byGit, g)
			w.Must(cluster.Client.Delete(w.Context(), g))
			w.Reconcile(g)
			check()
			if got := w.Reload(byUser).GetResourceVersion(); got != version {
				t.Errorf("the target was written: version %s, was %s", got, version)
			}
		})
	}
}
