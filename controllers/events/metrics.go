package events

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Metrics contains the metrics of Gates.
type Metrics struct {
	Registry              prometheus.Registerer
	opened, next, targets *prometheus.GaugeVec
	// overlays is absent for a state that no overlay has.
	overlays *prometheus.GaugeVec
	// endless is absent for an action without a request that has no end.
	endless *prometheus.GaugeVec
	// Empty and own report diagnostics. They are absent if there are no diagnostics.
	Empty, own *prometheus.GaugeVec
	// stopped is 1 for a release in waves that has stopped, absent otherwise. wave is the number of the current wave, absent if no release in
	// waves is in progress.
	stopped, wave *prometheus.GaugeVec
	// newer and since report the waiting revisions of GatedSources. They are absent if no revision waits.
	newer, since       *prometheus.GaugeVec
	lag                *prometheus.HistogramVec
	Skew               *prometheus.GaugeVec
	deferred, bypassed *prometheus.CounterVec
	emergencies        *prometheus.CounterVec
	// initial counts targets that closed Gates did not hold before their first success.
	initial *prometheus.CounterVec
	// passes counts passes that have ended or were refused.
	passes *prometheus.CounterVec
}

// MustMakeMetrics registers the metrics of Gates and panics if that fails.
func MustMakeMetrics(registry prometheus.Registerer) *Metrics {
	labels := []string{"name", "namespace"}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		Registry: registry,
		opened:   gauge("gating_gate_opened", "Whether a gate is opened (1) or closed (0).", labels...),
		next:     gauge("gating_gate_next_transition_timestamp_seconds", "Unix time of the next scheduled transition of a gate; absent if none is scheduled.", labels...),
		targets:  gauge("gating_gate_targets", "Number of targets of a gate by result: total, held, would_hold, suspended_by_others, exempt, pending, failed.", append(labels, "result")...),
		overlays: gauge("gating_gate_overlays", "Number of exceptions and requests that keep some targets of a gate in a state, by state: opened, closed; absent if there are none.", append(labels, "state")...),
		endless:  gauge("gating_gate_endless_request_timestamp_seconds", "Unix time of the oldest request in force that has no end, by action: open, close; absent if there is none.", append(labels, "action")...),
		Empty:    gauge("gating_gate_empty_references", "Number of entries of spec.targets of a gate that have matched nothing for a minute; absent if there are none.", labels...),
		own:      gauge("gating_gate_holds_own_source", "1 if a gate holds the object that applies it from Git; absent otherwise.", labels...),
		stopped:  gauge("gating_gate_release_stopped", "1 if the release of a gate in waves has stopped, because a target has failed or the waves are invalid; absent otherwise.", labels...),
		wave:     gauge("gating_gate_release_wave", "Number of the wave that an open gate releases: 1 for the first, the last one for targets that match no wave; absent if no release is in progress.", labels...),
		newer:    gauge("gating_source_waiting_revisions", "Number of revisions of the source of a gated source that are newer than the pinned one; absent if there are none.", labels...),
		since:    gauge("gating_source_waiting_since_timestamp_seconds", "Unix time since which a revision of a gated source waits for gates or approvals; absent if none waits.", labels...),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gating_transition_lag_seconds",
			Help:    "Time from the scheduled time of a transition until the last target was written, in seconds.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"state"}),
		Skew:        gauge("gating_clock_ahead_seconds", "Lower bound of how far the controller's clock is ahead of the API server's, measured when a gate is about to open; negative while it is behind."),
		deferred:    counter("gating_certificate_renewal_deferred_total", "Number of times that gates began to defer the renewal of a certificate, by reason: outside_window, disabled.", "reason"),
		bypassed:    counter("gating_certificate_renewal_bypassed_total", "Number of times that a certificate was renewed although a gate was closed, by reason: expiry_imminent.", "reason"),
		emergencies: counter("gating_gate_emergency_openings_total", "Number of emergency open requests, which took effect without the approvals that spec.approvals requires.", labels...),
		initial:     counter("gating_initial_reconciliations_total", "Number of new targets that a closed gate did not hold before their first success.", labels...),
		passes:      counter("gating_passes_total", "Number of passes by outcome: Succeeded, Failed, TimedOut, Closed, Opened, Suspended, Interrupted, Refused.", "outcome"),
	}
	registry.MustRegister(m.opened, m.next, m.targets, m.overlays, m.endless, m.Empty, m.own, m.stopped, m.wave, m.newer, m.since, m.lag, m.Skew, m.deferred, m.bypassed,
		m.emergencies, m.initial, m.passes)
	return m
}

// CountInitial counts a target for those of its Gates in this process that do not hold it before its first success.
func (m *Metrics) CountInitial(gates []verdict.Gate) {
	for _, g := range gates {
		if g.IsInitial() && g.IsOurs() {
			m.initial.WithLabelValues(g.Object.Name, g.Object.Namespace).Inc()
		}
	}
}

// RecordWaiting sets the metrics of a GatedSource. A zero status deletes them.
func (m *Metrics) RecordWaiting(key types.NamespacedName, s v1alpha1.GatedSourceStatus) {
	SetOrDelete(m.newer, key, int(s.Waiting))
	since := 0
	if s.WaitingSince != nil {
		since = int(s.WaitingSince.Unix())
	}
	SetOrDelete(m.since, key, since)
}

// Delete deletes the metrics of a Gate.
func (m *Metrics) Delete(key types.NamespacedName) {
	labels := prometheus.Labels{"name": key.Name, "namespace": key.Namespace}
	for _, vec := range []*prometheus.GaugeVec{m.opened, m.next, m.targets, m.overlays, m.endless, m.Empty, m.own, m.stopped, m.wave} {
		vec.DeletePartialMatch(labels)
	}
	m.emergencies.DeletePartialMatch(labels)
	m.initial.DeletePartialMatch(labels)
}

// EmergencyOpenings counts emergency requests. The metric of a Gate that requires approvals starts at zero, so that the first increase is
// visible.
func (m *Metrics) EmergencyOpenings(g *v1alpha1.Gate, handled []ledger.Request) {
	n := 0
	for _, request := range handled {
		if request.Emergency && request.Err == nil {
			n++
		}
	}
	if n > 0 || g.RequiredApprovals() > 0 {
		m.emergencies.WithLabelValues(g.Name, g.Namespace).Add(float64(n))
	}
}

// Record sets the metrics of a Gate.
func (m *Metrics) Record(g *v1alpha1.Gate) {
	key, opened := client.ObjectKeyFromObject(g), 0.0
	if conditions.IsTrue(g, v1alpha1.OpenedCondition) {
		opened = 1
	}
	m.opened.WithLabelValues(key.Name, key.Namespace).Set(opened)
	if next := g.Status.NextTransition; next != nil {
		m.next.WithLabelValues(key.Name, key.Namespace).Set(float64(next.At.Unix()))
	} else {
		m.next.DeleteLabelValues(key.Name, key.Namespace)
	}
	if g.Spec.InitialReconciliation == v1alpha1.InitialAllow {
		m.initial.WithLabelValues(key.Name, key.Namespace) // from zero on, so that the first increase is visible
	}
	SetOrDelete(m.own, key, is(conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition)))
	SetOrDelete(m.stopped, key, is(conditions.IsTrue(g, v1alpha1.ReleaseStoppedCondition)))
	wave := 0
	if release := g.Status.Release; gate.ReleasesInWaves(g) && release != nil && release.Waves != nil {
		wave = len(release.Waves.Done) + 1
	}
	SetOrDelete(m.wave, key, wave)
	for _, state := range []v1alpha1.State{v1alpha1.StateOpened, v1alpha1.StateClosed} {
		n := 0
		for i := range g.Status.Overlays {
			n += is(g.Status.Overlays[i].State == state)
		}
		if m.overlays.DeleteLabelValues(key.Name, key.Namespace, string(state)); n > 0 {
			m.overlays.WithLabelValues(key.Name, key.Namespace, string(state)).Set(float64(n))
		}
	}
	for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
		m.endless.DeleteLabelValues(key.Name, key.Namespace, string(action))
		if at := ledger.OldestEndless(g, action); !at.IsZero() {
			m.endless.WithLabelValues(key.Name, key.Namespace, string(action)).Set(float64(at.Unix()))
		}
	}
	if counts := g.Status.Targets; counts != nil {
		for result, n := range map[string]int64{
			"total": counts.Total, "held": counts.Held, "would_hold": counts.WouldHold, "suspended_by_others": counts.SuspendedByOthers, "exempt": counts.Exempt, "pending": counts.Pending, "failed": counts.Failed,
		} {
			m.targets.WithLabelValues(key.Name, key.Namespace, result).Set(float64(n))
		}
	}
}

func is(so bool) int {
	if so {
		return 1
	}
	return 0
}

// SetOrDelete sets a metric of an object, or deletes it if n is 0.
func SetOrDelete(vec *prometheus.GaugeVec, key types.NamespacedName, n int) {
	if n == 0 {
		vec.DeleteLabelValues(key.Name, key.Namespace)
		return
	}
	vec.WithLabelValues(key.Name, key.Namespace).Set(float64(n))
}

// RecordLag observes the time from a scheduled transition until all targets had reached the state.
func (m *Metrics) RecordLag(state v1alpha1.State, late time.Duration) {
	m.lag.WithLabelValues(string(state)).Observe(late.Seconds())
}
