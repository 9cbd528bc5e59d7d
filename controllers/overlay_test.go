package controllers_test

import (
	"slices"
	"testing"
	"time"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/target"
)

// only limits an exception to Kustomizations.
func only(names ...string) func(*v1alpha1.GateException) {
	return func(e *v1alpha1.GateException) {
		for _, name := range names {
			e.Spec.Targets = append(e.Spec.Targets, named(name))
		}
	}
}

func TestExceptionOpensAndClosesSomeTargets(t *testing.T) {
	w := locking(t)
	apps, infra, web := w.NewKustomization("apps", nil), w.NewKustomization("infra", nil), w.NewKustomization("web", nil)
	g := w.ClosedGate("production", all())
	w.Edit(g, func() {
		g.Spec.Interval.Duration = 9 * hour
		g.Spec.Release = &v1alpha1.ReleasePolicy{PerMinute: 1}
	})
	hotfix := w.exception("hotfix", openingIt, hour, 3*hour, only("apps", "infra"))
	w.exception("but", closingIt, 2*hour, 4*hour, only("infra"))
	mine := []string{key(g)}
	unlocks := func(names ...string) (all []lockv1alpha1.OverlayLock) {
		for _, name := range names {
			all = append(all, lockv1alpha1.OverlayLock{Gate: key(g), Name: name})
		}
		return all
	}
	for _, step := range []struct {
		after            time.Duration
		apps, infra, web bool // held
		overlays         []lockv1alpha1.OverlayLock
		next             time.Duration
		overlaid         string
	}{
		{0, true, true, true, nil, hour, ""},
		{hour, false, false, true, unlocks("apps", "infra"), hour, "2 of 3 open"},
		{2 * hour, false, true, true, append([]lockv1alpha1.OverlayLock{{Gate: key(g), Locked: true, Name: "infra"}}, unlocks("apps", "infra")...), hour, "1 of 3 open"},
		{3 * hour, true, true, true, []lockv1alpha1.OverlayLock{{Gate: key(g), Locked: true, Name: "infra"}}, hour, ""},
		{4 * hour, true, true, true, nil, 9 * hour, ""},
	} {
		w.In(step.after)
		if result := w.Reconcile(g); result.RequeueAfter > step.next {
			t.Errorf("after %s: the gate is reconciled in %s, want at most %s", step.after, result.RequeueAfter, step.next)
		}
		for obj, held := range map[*target.Object]bool{apps: step.apps, infra: step.infra, web: step.web} {
			if got := w.Suspended(w.Reload(obj)); got != held {
				t.Errorf("after %s: %s is held: %t", step.after, obj.GetName(), got)
			}
		}
		if w.Reconcile(g); gate.Overlaid(g) != step.overlaid {
			t.Errorf("after %s: overlaid: %q, want %q", step.after, gate.Overlaid(g), step.overlaid)
		}
		spec := lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(g): true}, Targets: map[string][]string{"Kustomization/*": mine}}
		if len(step.overlays) > 0 {
			spec.Overlays = map[string][]lockv1alpha1.OverlayLock{"Kustomization": step.overlays}
		}
		w.expectLock(w.Namespace, spec)
	}
	w.reportOn(hotfix)
	w.saysException(hotfix, "Active False Expired", "Ready True Succeeded")
	if i := slices.IndexFunc(g.Status.Exceptions, func(r v1alpha1.ExceptionRecord) bool { return r.Name == "hotfix" }); i < 0 || !g.Status.Exceptions[i].AppliedAt.Equal(&hotfix.Spec.ValidFrom) {
		t.Errorf("records %+v", g.Status.Exceptions)
	}
}

func TestExceptionClosesSomeTargetsOfOpenGate(t *testing.T) {
	w := locking(t)
	apps, web := w.NewKustomization("apps", nil), w.NewKustomization("web", nil)
	g := w.ClosedGate("production", all())
	w.Edit(g, func() { g.Spec.Default = v1alpha1.StateOpened })
	w.exception("but", closingIt, hour, 2*hour, only("apps"))
	expect := func(appsHeld, webHeld bool) {
		t.Helper()
		w.Reconcile(g)
		if a, b := w.Suspended(w.Reload(apps)), w.Suspended(w.Reload(web)); a != appsHeld || b != webHeld {
			t.Errorf("apps is held: %t, web is held: %t", a, b)
		}
	}
	expect(false, false)
	w.In(hour)
	expect(true, false)
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{
		Gates: map[string]bool{key(g): false}, Targets: map[string][]string{"Kustomization/*": {key(g)}},
		Overlays: map[string][]lockv1alpha1.OverlayLock{"Kustomization": {{Gate: key(g), Locked: true, Name: "apps"}}},
	})
	w.Resume(apps)
	expect(true, false)
	w.In(2 * hour)
	expect(false, false)
	w.expectLock(w.Namespace, lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(g): false}})
}
