package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// says sets the condition Ready of a target for its current spec as kustomize-controller does.
func (w *world) says(app *target.Object, ready metav1.ConditionStatus, message string) {
	w.Helper()
	w.Reload(app)
	before := app.DeepCopy()
	status := map[string]any{}
	if is, ok, _ := unstructured.NestedMap(app.Object, "status"); ok {
		status = is
	}
	if ready == metav1.ConditionTrue {
		status["observedGeneration"] = app.GetGeneration()
	}
	list, _, _ := unstructured.NestedSlice(app.Object, "status", "conditions")
	list = slices.DeleteFunc(list, func(c any) bool { return c.(map[string]any)["type"] == "Ready" }) //nolint:forcetypeassert // as the schema says
	status["conditions"] = append(list, map[string]any{
		"type": "Ready", "status": string(ready), "reason": "Tested", "message": message, "observedGeneration": app.GetGeneration(),
		"lastTransitionTime": w.FakeClock.Now().UTC().Format(time.RFC3339),
	})
	app.Object["status"] = status
	w.Must(cluster.Client.Status().Patch(w.Context(), &app.Unstructured, client.MergeFrom(before), client.FieldOwner("kustomize-controller")))
}

func wave(name string, soak time.Duration) v1alpha1.ReleaseWave {
	return v1alpha1.ReleaseWave{Name: name, MatchLabels: map[string]string{"wave": name}, Soak: &v1alpha1.Duration{Duration: soak}}
}

// wavesWorld returns a world with a closed Gate that holds two targets in each of two waves with a soak of ten minutes, and one in no wave.
func wavesWorld(t *testing.T) (*world, *v1alpha1.Gate, map[string]*target.Object) {
	t.Helper()
	t.Parallel()
	w := newWorld(t)
	apps := map[string]*target.Object{}
	for name, wave := range map[string]string{"a": "one", "b": "one", "c": "two", "d": "two", "e": ""} {
		apps[name] = w.NewKustomization(name, map[string]string{"wave": wave})
		w.says(apps[name], metav1.ConditionTrue, "Applied revision: v1")
	}
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: time.Hour}, Targets: []v1alpha1.TargetReference{all()},
		Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{wave("one", 10*time.Minute), wave("two", 10*time.Minute)}},
	})
	w.Reconcile(g)
	w.Events.Take("")
	return w, g, apps
}

// expectWaves checks which targets are held, and the status of the waves.
func (w *world) expectWaves(g *v1alpha1.Gate, apps map[string]*target.Object, held, want string) {
	w.Helper()
	var list []*target.Object
	for _, app := range apps {
		list = append(list, app)
	}
	w.expectHeldOf(list, held)
	got := "none"
	if g.Status.Release != nil && g.Status.Release.Waves != nil {
		s := g.Status.Release.Waves
		got = fmt.Sprintf("%s %d/%d, done %q", s.Current, s.Ready, s.Total, s.Done)
		if s.ReadySince != nil {
			got += fmt.Sprintf(", ready since %s", s.ReadySince.Sub(start))
		}
		for _, t := range s.WaitingFor {
			got += fmt.Sprintf(", %s %s", t.Name, t.State)
		}
		if s.ProceededPast != "" {
			got += ", past " + s.ProceededPast
		}
	}
	if got != want {
		w.Errorf("the waves are %s\nwant %s", got, want)
	}
}

// lookAgain handles a change of the readiness of targets, and reconciles their Gate.
func (w *world) lookAgain(g *v1alpha1.Gate, apps ...*target.Object) {
	w.Helper()
	for _, app := range apps {
		enqueue.ReadinessChanged(w.State.Rollouts, w.Queues, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": app.GetAPIVersion(), "kind": app.GetKind(), "metadata": map[string]any{"name": app.GetName(), "namespace": app.GetNamespace()},
		}}, &w.Reload(app).Unstructured)
	}
	w.Reconcile(g)
}

func TestWaveIsReleasedOncePreviousIsReady(t *testing.T) {
	w, g, apps := wavesWorld(t)
	w.expectWaves(g, apps, "abcde", "none")
	w.Open(g, start)
	w.Reconcile(g)
	w.expectWaves(g, apps, "cde", `one 0/2, done [], a Progressing, b Progressing`)
	equal(t, readyOf(g), "True Succeeded: wave one: 0 of 2 ready; 3 of 5 targets held")
	if got := w.series()["gate_release_wave"]; got != 1 {
		t.Errorf("the metric says wave %v", got)
	}

	w.In(time.Minute)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["a"])
	w.expectWaves(g, apps, "cde", `one 1/2, done [], b Progressing`)
	w.In(2 * time.Minute)
	w.says(apps["b"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["b"])
	w.expectWaves(g, apps, "cde", `one 2/2, done [], ready since 2m0s`)
	equal(t, readyOf(g), "True Succeeded: wave one: 2 of 2 ready, wave two starts at 2026-11-23T12:12:00Z; 3 of 5 targets held")

	w.In(12*time.Minute - time.Millisecond)
	if result := w.Reconcile(g); result.RequeueAfter != time.Millisecond {
		t.Errorf("it is looked at again after %s", result.RequeueAfter)
	}
	w.expectWaves(g, apps, "cde", `one 2/2, done [], ready since 2m0s`)
	w.Events.Take("")
	w.In(12 * time.Minute)
	w.Reconcile(g)
	w.expectWaves(g, apps, "e", `two 0/2, done ["one"], c Progressing, d Progressing`)
	equal(t, w.Events.Take("Gate/production"), []string{"Normal Gate/production WaveReleased: Wave one is released, 2 targets are ready. Next is wave two with 2 targets."})

	for _, name := range []string{"c", "d"} {
		w.says(apps[name], metav1.ConditionTrue, "Applied revision: v2")
	}
	w.lookAgain(g, apps["c"], apps["d"])
	w.In(30 * time.Minute)
	w.Reconcile(g)
	w.expectWaves(g, apps, "", `the rest 0/1, done ["one" "two"], e Progressing`)
	w.says(apps["e"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["e"])
	w.expectWaves(g, apps, "", ` 0/0, done ["one" "two" "the rest"]`)
	equal(t, readyOf(g), "True Succeeded: 0 of 5 targets held")
	if got, ok := w.series()["gate_release_wave"]; ok {
		t.Errorf("the metric says wave %v", got)
	}

	w.In(time.Hour)
	w.Close(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.In(2 * time.Hour)
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.expectWaves(g, apps, "cde", `one 0/2, done [], a Progressing, b Progressing`)

	// A Gate that opens and holds nothing has nothing to release, so no wave waits.
	elsewhere := w.NewNamespace()
	failed := w.NewKustomizationIn(elsewhere, "app", map[string]string{"wave": "one"})
	w.says(failed, metav1.ConditionFalse, "path not found")
	spec := g.Spec
	spec.Default = v1alpha1.StateOpened
	idle := w.GateIn(elsewhere, "idle", spec)
	w.Reconcile(idle)
	equal(t, readyOf(idle), "True Succeeded: 0 of 1 targets held")
	w.expectWaves(idle, map[string]*target.Object{"app": failed}, "", ` 0/0, done []`)
}

// proceedAt requests to proceed.
func (w *world) proceedAt(g *v1alpha1.Gate, value string) {
	w.Helper()
	w.Annotate(g, v1alpha1.ProceedReasonAnnotation, "it is a flake")
	w.Annotate(g, v1alpha1.ProceedRequestedByAnnotation, "alice")
	w.Annotate(g, v1alpha1.ProceedRequestedAtAnnotation, value)
	w.Reconcile(g)
}

func TestFailureStopsWavesUntilProceed(t *testing.T) {
	w, g, apps := wavesWorld(t)
	const stop = "wave one: Kustomization %s/b has failed: path not found. Nothing more is released until it is ready, or until a user runs kubectl gate proceed production -n %[1]s"
	message := fmt.Sprintf(stop, w.Namespace)
	fails := func() {
		t.Helper()
		w.says(apps["b"], metav1.ConditionFalse, "path not found")
		w.lookAgain(g, apps["b"])
	}
	isStopped := func(want bool) {
		t.Helper()
		if _, inMetrics := w.series()["gate_release_stopped"]; inMetrics != want || conditions.Has(g, v1alpha1.ReleaseStoppedCondition) != want {
			t.Errorf("in the metrics: %t, conditions %+v", inMetrics, g.Status.Conditions)
		}
	}
	w.Open(g, start)
	w.Reconcile(g)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["a"])
	fails()
	isStopped(true)
	equal(t, readyOf(g), "False WaveFailed: "+message)
	equal(t, conditions.GetMessage(g, v1alpha1.ReleaseStoppedCondition), message)
	equal(t, w.Events.Take("ReleaseStopped"), []string{
		"Warning Gate/production ReleaseStopped: W" + message[1:],
		"Warning Kustomization/b ReleaseStopped: Stops the release of gate '" + key(g) + "': path not found",
	})

	// Flux tries again, and the controller restarts.
	w.In(time.Hour)
	w.says(apps["b"], metav1.ConditionUnknown, "Reconciliation in progress")
	w.lookAgain(g, apps["b"])
	w.restart()
	w.Reconcile(g)
	w.expectWaves(g, apps, "cde", `one 1/2, done [], b Failed`)
	fails()
	expectNone(t, w.Events.Take("Gate/production"))

	// A close holds everything again. The next opening begins with the first wave.
	w.Close(g, w.In(hours(2)))
	w.Reconcile(g)
	w.Reconcile(g)
	w.expectWaves(g, apps, "abcde", `one 1/2, done []`)
	isStopped(false)
	w.Open(g, w.In(hours(3)))
	w.Reconcile(g)
	w.expectWaves(g, apps, "cde", `one 0/2, done [], a Progressing, b Progressing`)
	fails()
	isStopped(true)

	now := w.In(hours(3) + time.Minute).Format(time.RFC3339)
	w.Events.Take("")
	w.proceedAt(g, now+",wave=two")
	w.Reconcile(g)
	w.expectWaves(g, apps, "cde", `one 0/2, done [], b Failed, a Progressing`)
	equal(t, w.Events.Take("ProceedRefused"), []string{fmt.Sprintf(
		"Warning Gate/production ProceedRefused: annotation proceed.gate.fluxcd.io/requestedAt: %q changes nothing: the current wave is no longer the requested one: one", now+",wave=two")})
	w.proceedAt(g, now+",wave=one")
	w.expectWaves(g, apps, "e", `two 0/2, done ["one"], c Progressing, d Progressing, past one`)
	equal(t, w.Events.Take("Gate/production"), []string{"Normal Gate/production ReleaseContinued: The release continues without waiting for wave one, by alice: it is a flake"})
	isStopped(false)

	// A request counts once, also after a restart and if Flux restores an older one.
	w.restart()
	w.Reconcile(g)
	for _, value := range []string{start.Add(hours(3) + time.Second).Format(time.RFC3339), now + ",wave=one"} {
		w.proceedAt(g, value)
		w.Reconcile(g)
	}
	w.expectWaves(g, apps, "e", `two 0/2, done ["one"], c Progressing, d Progressing, past one`)
	w.says(apps["c"], metav1.ConditionTrue, "Applied revision: v2")
	w.says(apps["d"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["c"], apps["d"])
	w.In(hours(4))
	w.Reconcile(g)
	w.says(apps["e"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["e"])
	w.expectWaves(g, apps, "", ` 0/0, done ["one" "two" "the rest"], past one`)
	w.Events.Take("")
	w.proceedAt(g, w.FakeClock.Now().Format(time.RFC3339))
	if got := w.Events.Take("ProceedRefused"); len(got) != 1 || !strings.HasSuffix(got[0], "no release is in progress") {
		t.Errorf("events %q", got)
	}
}
