package controllers_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// fluxReports writes a status of a target, as Flux does.
func (w *world) fluxReports(obj *target.Object, status string) {
	w.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
	w.Must(cluster.Client.Status().Patch(w.Context(), w.Reload(obj).DeepCopy(), patch, client.FieldOwner("kustomize-controller")))
}

// after sets the clock to a time after the creation of a target.
func (w *world) after(obj *target.Object, d time.Duration) {
	w.Helper()
	w.In(w.Reload(obj).GetCreationTimestamp().Add(d).Sub(start))
}

// initials returns the metric of initial reconciliations.
func (w *world) initials() float64 {
	w.Helper()
	families, err := w.Registry.Gather()
	w.Must(err)
	for _, family := range families {
		if family.GetName() == "gating_initial_reconciliations_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return -1
}

// A failed first installation is retried for an hour, and then held on time.
func TestFailedInitialReconciliationIsHeldAfterAnHour(t *testing.T) {
	w := locking(t)
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.InitialReconciliation = v1alpha1.InitialAllow })
	app := w.NewKustomization("apps", nil)
	w.after(app, time.Minute)
	w.Reconcile(g)
	until := app.GetCreationTimestamp().Add(time.Hour).UTC().Format(time.RFC3339)
	message := "Not held before its first success, until " + until + " at the latest, although gate '" + key(g) + "' is closed."
	free := suspension{Approved: "True InitialReconciliation " + message}
	w.Expect(app, free)
	if !w.lock(w.Namespace).Spec.Initial[key(g)] {
		t.Error("the GateLock has no flag")
	}
	w.fluxReports(app, `{"lastAttemptedRevision":"main@1"}`)
	w.Reconcile(g)
	w.Expect(app, free)
	if events := w.Events.Take("Kustomization/apps "); len(events) != 1 || !strings.Contains(events[0], "InitialReconciliation: "+message) {
		t.Errorf("got events %q, want one", events)
	}
	if exempt, counted := w.series()["gate_targets exempt"], w.initials(); exempt != 1 || counted != 1 {
		t.Errorf("%v exempt, %v counted", exempt, counted)
	}
	if got := w.RequeueAfter[target.KeyOf(app)]; got != 59*time.Minute {
		t.Errorf("reconciled again after %s, want after 59 minutes", got)
	}

	w.after(app, time.Hour)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Must(cluster.Client.Delete(w.Context(), &app.Unstructured))
	app = w.NewKustomization("apps", nil) // the documented gap: without the lock, a new object gets another hour
	w.after(app, 0)
	w.Reconcile(g)
	if got := w.Suspension(app); got.Suspend != nil {
		t.Errorf("got %+v after it was created again", got)
	}
}

func TestInitialReconciliationEndsWithFirstSuccess(t *testing.T) {
	w := locking(t)
	app := w.NewKustomization("apps", nil)
	w.after(app, time.Minute)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.ExpectHeld(app, g)

	w.Edit(g, func() { g.Spec.InitialReconciliation = v1alpha1.InitialAllow })
	w.Reconcile(g)
	w.Reconcile(g) // the release waits for the GateLock
	if got := w.Suspension(app); got.Suspend != nil || got.HeldBy != "" || !strings.HasPrefix(got.Approved, "True InitialReconciliation ") {
		t.Errorf("got %+v, want it released", got)
	}
	before := w.Reload(app).DeepCopy()
	w.fluxReports(app, `{"lastAppliedRevision":"main@1"}`)
	w.Reconcilers().Handlers.ForTargets(w.Context()).OnUpdate(before, &w.Reload(app).Unstructured)
	w.Must(w.ReconcileEnqueued())
	w.ExpectHolder(app, g)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Resume(app)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
}

func TestInitialReconciliationDoesNotResumeOthers(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.Suspend(app)
	w.after(app, time.Minute)
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.InitialReconciliation = v1alpha1.InitialAllow })
	w.Reconcile(g)
	w.Expect(app, suspension{Suspend: true, Owners: []string{"flux"}})
	if events := w.Events.Take("Kustomization/apps "); len(events) > 0 {
		t.Errorf("got events %q", events)
	}
}

// The first promotion of a new GatedSource needs no open Gate. The next revision waits.
func TestInitialPromotion(t *testing.T) {
	f := follow(t, v1alpha1.GatedSourceSpec{})
	g := f.ClosedGate("nights", allGatedSources)
	f.Edit(g, func() { g.Spec.InitialReconciliation = v1alpha1.InitialAllow })
	f.In(f.g.CreationTimestamp.Add(time.Minute).Sub(start))
	f.looks(g)
	f.looks(g)
	f.isAt("a", "Approved True UpToDate")
	if p := f.g.Status.Promotions; len(p) != 1 || p[0].Reason != v1alpha1.InitialReconciliationReason || f.initials() != 1 {
		t.Errorf("promotions %+v, %v counted", p, f.initials())
	}
	if events := f.Events.Take("GatedSource/apps "); len(events) != 1 || !strings.Contains(events[0], "(InitialReconciliation)") {
		t.Errorf("got events %q", events)
	}
	f.push("b")
	f.looks(g)
	f.isAt("a", "Approved False GateClosed")
	if f.initials() != 1 {
		t.Errorf("%v counted", f.initials())
	}
}
