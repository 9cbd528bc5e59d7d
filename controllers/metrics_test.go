package controllers_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// series returns the values of the metrics of a Gate by name and result. For a histogram, it returns the count and the sum by state.
func (w *world) series() map[string]float64 {
	w.Helper()
	families, err := w.Registry.Gather()
	w.Must(err)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "gating_")
			for _, label := range metric.GetLabel() {
				switch label.GetName() {
				case "result", "state":
					name += " " + label.GetValue()
				case "namespace":
					if label.GetValue() != w.Namespace {
						w.Errorf("%s has namespace %q", name, label.GetValue())
					}
				}
			}
			if histogram := metric.GetHistogram(); histogram != nil {
				values[name+" count"] = float64(histogram.GetSampleCount())
				values[name+" sum"] = histogram.GetSampleSum()
			} else {
				values[name] = metric.GetGauge().GetValue()
			}
		}
	}
	return values
}

func TestGateMetrics(t *testing.T) {
	w := newWorld(t)
	w.NewKustomization("a", nil)
	w.NewKustomization("b", nil)
	w.Suspend(w.NewKustomization("foreign", nil))
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", Window: duration(time.Hour),
		Targets: []v1alpha1.TargetReference{all(), {Kind: "Deployment", Name: "a"}},
	})
	w.Reconcile(g)
	want := map[string]float64{
		"gate_opened": 0, "gate_targets total": 3, "gate_targets held": 2, "gate_targets would_hold": 0, "gate_targets suspended_by_others": 1, "gate_targets exempt": 0, "gate_targets pending": 0, "gate_targets failed": 1,
	}
	equal(t, w.series(), want)

	w.Open(g, start)
	w.Reconcile(g)
	want["gate_opened"], want["gate_targets held"], want["gate_targets suspended_by_others"] = 1, 0, 0
	want["gate_next_transition_timestamp_seconds"] = float64(start.Add(time.Hour).Unix())
	equal(t, w.series(), want)

	// The reconciliation is two seconds late, and the last target takes three more. A request is not a scheduled transition.
	w.In(hours(1) + 2*time.Second)
	w.Writes.Before = once("patch-status Kustomization", func() error { w.In(hours(1) + 5*time.Second); return nil })
	w.Reconcile(g)
	want["gate_opened"], want["gate_targets held"], want["gate_targets suspended_by_others"] = 0, 2, 1
	delete(want, "gate_next_transition_timestamp_seconds")
	want["transition_lag_seconds closed count"], want["transition_lag_seconds closed sum"] = 1, 5
	equal(t, w.series(), want)
	w.In(hours(1.5))
	w.Reconcile(g)
	equal(t, w.series(), want)

	// The series of a Gate are deleted with it, with or without its finalizer.
	for name, finalizers := range map[string][]string{"deleted": {v1alpha1.GateFinalizer}, "deleted-by-force": nil} {
		gone := w.Gate(name, v1alpha1.GateSpec{Default: "opened", NotAfter: ptr.To(at(10 * hour))})
		w.Reconcile(gone)
		w.Edit(gone, func() { gone.Finalizers = finalizers })
		w.Must(cluster.Client.Delete(w.Context(), gone))
		w.Reconcile(gone)
		equal(t, w.series(), want)
	}
}
