package controllers_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
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

	w.In(hours(1))
	w.Reconcile(g)
	want["gate_opened"], want["gate_targets held"], want["gate_targets suspended_by_others"] = 0, 2, 1
	delete(want, "gate_next_transition_timestamp_seconds")
	want["transition_lag_seconds closed count"], want["transition_lag_seconds closed sum"] = 1, 0
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

func TestTransitionLagIsObservedOnce(t *testing.T) {
	w := newWorld(t)
	w.NewKustomization("a", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "opened", Targets: []v1alpha1.TargetReference{all()},
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: dated("freeze", hours(1), hours(2))}},
	})
	lag := func() map[string]float64 {
		values := map[string]float64{}
		for name, value := range w.series() {
			if strings.HasPrefix(name, "transition_lag") {
				values[strings.TrimPrefix(name, "transition_lag_seconds ")] = value
			}
		}
		return values
	}
	w.Reconcile(g)
	w.In(hours(0.5))
	w.Reconcile(g)
	equal(t, lag(), map[string]float64{})

	// The reconciliation is two seconds late, and the last target takes three more.
	w.In(hours(1) + 2*time.Second)
	w.Writes.Before = once("patch-status Kustomization", func() error { w.In(hours(1) + 5*time.Second); return nil })
	w.Reconcile(g)
	equal(t, lag(), map[string]float64{"closed count": 1, "closed sum": 5})
	w.In(hours(1.5))
	w.Reconcile(g)
	equal(t, lag(), map[string]float64{"closed count": 1, "closed sum": 5})

	// A request is not a scheduled transition.
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.Close(g, w.In(hours(1.6)))
	w.Reconcile(g)
	equal(t, lag(), map[string]float64{"closed count": 1, "closed sum": 5})
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	events.MustMakeMetrics(registry)
	registry.MustRegister(events.NewHeldCertificates(func(context.Context) ([]*target.Object, error) { return nil, nil }))
	descriptions := make(chan *prometheus.Desc, 100)
	registry.Describe(descriptions)
	close(descriptions)
	known := []string{"gating_build_info"} // of internal/app
	for description := range descriptions {
		known = append(known, regexp.MustCompile(`gating_[a-z_]+`).FindString(description.String()))
	}
	content, err := os.ReadFile(filepath.Join(harness.Root(), "config", "monitoring", "prometheus_rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`gating_[a-z_]+`).FindAllString(string(content), -1)
	if len(used) < 3 {
		t.Errorf("the alerts use %q", used)
	}
	for _, name := range used {
		if !slices.Contains(known, name) {
			t.Errorf("there is no metric %s in %q", name, known)
		}
	}
}

func TestExpiryOfHeldCertificates(t *testing.T) {
	w := newWorld(t)
	w.certificate("www", nil)
	w.certificate("needless", map[string]any{"renewBefore": "1h"})
	adapter, err := target.For("", "Certificate")
	w.Must(err)
	w.Registry.MustRegister(events.NewHeldCertificates(func(ctx context.Context) ([]*target.Object, error) {
		return w.Targets.Select(ctx, adapter, w.Namespace, ptr.To(all()))
	}))
	g := w.ClosedGate("production", certificates)
	const metric = "certificate_held_expiration_timestamp_seconds"
	if got, ok := w.series()[metric]; ok {
		t.Errorf("%v although nothing is held", got)
	}
	w.Reconcile(g)
	if got := w.series()[metric]; got != float64(expiry.Unix()) {
		t.Errorf("got %v, want %d", got, expiry.Unix())
	}
	if got := w.series()["certificate_held_not_before_timestamp_seconds"]; got != float64(start.Add(-30*day).Unix()) {
		t.Errorf("issued at %v", got)
	}
	w.Open(g, start)
	w.Reconcile(g)
	if got, ok := w.series()[metric]; ok {
		t.Errorf("%v although nothing is held", got)
	}
}
