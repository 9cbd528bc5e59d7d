package controllers_test

import (
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// stoppedRelease returns a world with a Gate whose first wave failed a minute after it opened.
func stoppedRelease(t *testing.T) (*world, *v1alpha1.Gate, map[string]*target.Object) {
	t.Helper()
	w, g, apps := wavesWorld(t)
	w.Open(g, start)
	w.Reconcile(g)
	w.says(apps["b"], "False", "path not found")
	w.lookAgain(g, apps["b"])
	w.In(time.Minute)
	w.Events.Take("")
	return w, g, apps
}

// proceedUnsettled requests to proceed while a target has not been reconciled yet, just after the status was written. Then it reconciles
// only the Gate.
func (w *world) proceedUnsettled(g *v1alpha1.Gate, value string) error {
	w.Helper()
	w.Annotate(g, v1alpha1.ProceedRequestedAtAnnotation, value, v1alpha1.ProceedRequestedByAnnotation, "alice", v1alpha1.ProceedReasonAnnotation, "it is\na flake")
	w.State.Summary.Await(summary.KeyFor(g))
	w.State.Gates.StartDecision(g, w.FakeClock.Now())
	_, err := w.ReconcileGate(client.ObjectKeyFromObject(g))
	w.Read(g)
	return err
}

// stripped removes a request to proceed as Flux does.
func (w *world) stripped(g *v1alpha1.Gate) {
	w.Helper()
	w.Annotate(g, v1alpha1.ProceedRequestedAtAnnotation, "", v1alpha1.ProceedRequestedByAnnotation, "", v1alpha1.ProceedReasonAnnotation, "")
}

const stopsAtOne = `one 0/2, done [], b Failed, a Progressing`

func TestProceedCountsAfterFluxRemovesIt(t *testing.T) {
	w, g, apps := stoppedRelease(t)

	// Nothing is released before the request is in the status.
	w.Writes.Before = failing("patch-status Gate")
	if err := w.proceedUnsettled(g, "2026-11-23T12:01:00Z"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	w.Writes.Reset()
	w.stripped(g)
	w.Reconcile(g)
	w.expectWaves(g, apps, "cde", stopsAtOne)
	if events := w.Events.Take("Proceed"); len(events) > 0 {
		t.Errorf("events %q", events)
	}

	w.Must(w.proceedUnsettled(g, "2026-11-23T12:01:00Z,wave=one"))
	w.expectWaves(g, apps, "cde", stopsAtOne)
	noted := g.Status.Release.Proceed
	if noted == nil || noted.Value != "2026-11-23T12:01:00Z,wave=one" || noted.RequestedBy != "alice" || noted.Message != "it is a flake" || !noted.RecordedAt.Time.Equal(start.Add(time.Minute)) {
		t.Fatalf("noted %+v", noted)
	}
	w.stripped(g)
	w.restart()
	w.In(3 * time.Minute)
	w.Reconcile(g)
	w.expectWaves(g, apps, "e", `two 0/2, done ["one"], c Progressing, d Progressing, past one`)
	equal(t, w.Events.Take("Gate/production"), []string{"Normal Gate/production ReleaseContinued: The release continues without waiting for wave one, by alice: it is a flake"})
	if release := g.Status.Release; release.Proceed != nil || release.LastHandledProceed != noted.Value {
		t.Errorf("%+v", release)
	}
}
