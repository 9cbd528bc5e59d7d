package target

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/activation"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// start is the time of these tests.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// newObject returns an object of namespace shop, trimmed as in the cache.
func newObject(apiVersion, kind string, spec, status map[string]any) *target.Object {
	obj := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "apps", "namespace": "shop"}, "spec": spec, "status": status,
	}}}
	target.Trim(&obj.Unstructured, verdict.Us)
	return obj
}

func kustomization(spec map[string]any) *target.Object {
	return newObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", spec, nil)
}

// certificate returns a Certificate that expires some days after start, 80 days after it was issued.
func certificate(days int) *target.Object {
	until := start.AddDate(0, 0, days)
	return newObject("cert-manager.io/v1", "Certificate", map[string]any{"secretName": "www"}, map[string]any{
		"notBefore": until.AddDate(0, 0, -80).Format(time.RFC3339), "notAfter": until.Format(time.RFC3339),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready"}},
	})
}

// newGate returns a Gate of namespace shop that has been closed or open for an hour.
func newGate(name string, state v1alpha1.State, spec v1alpha1.GateSpec) verdict.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
	status := metav1.ConditionFalse
	if state == v1alpha1.StateOpened {
		status = metav1.ConditionTrue
	}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: status, Reason: v1alpha1.DefaultReason}}
	g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(start.Add(-time.Hour)), State: state}
	return verdict.Governing("shop/"+name, g, start)
}

// modern is the definition of Certificates since cert-manager v1.21.1.
var modern = target.Definition{Spec: map[string]bool{"renewal": true, "renewBefore": true}}

// ruled returns the result of a pass over a target that writes nothing.
func ruled(obj *target.Object, gates ...verdict.Gate) *Result {
	return &Result{Result: summary.Result{Gates: gates, Ruling: verdict.Rule(verdict.Situation{Object: obj, Gates: gates, Definition: modern, Now: start})}}
}

func TestOutcomesForGateWithModeAudit(t *testing.T) {
	audit := func(state v1alpha1.State) verdict.Gate {
		return newGate("audit", state, v1alpha1.GateSpec{Mode: v1alpha1.ModeAudit, Certificates: &v1alpha1.CertificatePolicy{SafetyMargin: &v1alpha1.Duration{Duration: 10 * 24 * time.Hour}}})
	}
	undecided := audit(v1alpha1.StateClosed)
	undecided.Would = verdict.Undecided
	activating := certificate(70)
	activating.SetAnnotations(map[string]string{v1alpha1.ActivateIntoAnnotation: "www-live"})
	for name, tc := range map[string]struct {
		obj     *target.Object
		gate    verdict.Gate
		want    summary.Outcome
		recheck time.Duration
	}{
		"open":                        {kustomization(nil), audit(v1alpha1.StateOpened), summary.Other, 0},
		"closed":                      {kustomization(nil), audit(v1alpha1.StateClosed), summary.WouldHold, 0},
		"undecided":                   {kustomization(nil), undecided, summary.Held, 0}, // the previous outcome
		"suspended by others":         {kustomization(map[string]any{"suspend": true}), audit(v1alpha1.StateClosed), summary.SuspendedByOthers, 0},
		"a certificate":               {certificate(70), audit(v1alpha1.StateClosed), summary.WouldHold, 60 * 24 * time.Hour},
		"a certificate that expires":  {certificate(9), audit(v1alpha1.StateClosed), summary.Exempt, 0},
		"a certificate to activate":   {activating, audit(v1alpha1.StateClosed), summary.Exempt, 0},
		"a certificate, open":         {certificate(70), audit(v1alpha1.StateOpened), summary.Other, 0},
		"a certificate at its margin": {certificate(10), audit(v1alpha1.StateClosed), summary.Exempt, 0},
	} {
		res := ruled(tc.obj, tc.gate)
		if got := res.audit(tc.gate, summary.Held); got != tc.want {
			t.Errorf("%s: outcome %v, want %v", name, got, tc.want)
		}
		recheck := time.Duration(0)
		if !res.At.IsZero() {
			recheck = res.At.Sub(start)
		}
		if recheck != tc.recheck {
			t.Errorf("%s: recheck after %s, want %s", name, recheck, tc.recheck)
		}
		if res.Ruling.Step.Write || res.Ruling.Step.Hold {
			t.Errorf("%s: it is written: %+v", name, res.Ruling.Step)
		}
	}
}

func TestPhasesOfTargetReleasedInWaves(t *testing.T) {
	inWaves := v1alpha1.GateSpec{Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{{Name: "one"}}}}
	open, closed, other := newGate("a", v1alpha1.StateOpened, inWaves), newGate("a", v1alpha1.StateClosed, inWaves), newGate("b", v1alpha1.StateClosed, v1alpha1.GateSpec{})
	ready := func(status string) *target.Object {
		obj := kustomization(map[string]any{"dependsOn": []any{map[string]any{"name": "db"}}})
		obj.SetConditions([]metav1.Condition{{Type: "Ready", Status: metav1.ConditionStatus(status), Reason: "Tested", Message: "path not found", LastTransitionTime: metav1.NewTime(start)}})
		return obj
	}
	for name, tc := range map[string]struct {
		obj     *target.Object
		gates   []verdict.Gate
		change  func(*Result)
		phase   waves.Phase
		message string
	}{
		"closed":               {kustomization(nil), []verdict.Gate{closed}, nil, waves.Held, ""},
		"waits for its wave":   {kustomization(nil), []verdict.Gate{open}, func(r *Result) { r.Ruling.Wait = verdict.ForSlot }, waves.Held, ""},
		"waits for the lock":   {kustomization(nil), []verdict.Gate{open}, func(r *Result) { r.Ruling.Wait = verdict.ForLock }, waves.Held, "waits until it is unlocked"},
		"held by another gate": {kustomization(nil), []verdict.Gate{open, other}, nil, waves.Blocked, "held by shop/b"},
		"passes another gate": {kustomization(nil), []verdict.Gate{open, other}, func(r *Result) { r.Ruling.Step.Outcome = verdict.Passing }, waves.Blocked,
			"held by shop/b, a pass allows one reconciliation"},
		"passes this gate":    {kustomization(nil), []verdict.Gate{closed}, func(r *Result) { r.Ruling.Step.Outcome = verdict.Passing }, waves.Held, ""},
		"suspended by others": {kustomization(map[string]any{"suspend": true}), []verdict.Gate{open}, nil, waves.Skipped, ""},
		"exempt":              {certificate(1), []verdict.Gate{closed}, nil, waves.Skipped, ""},
		"ready":               {ready("True"), []verdict.Gate{open}, nil, waves.Ready, ""},
		"failed":              {ready("False"), []verdict.Gate{open}, nil, waves.Failed, "path not found"},
	} {
		res := ruled(tc.obj, tc.gates...)
		if tc.change != nil {
			tc.change(res)
		}
		if m := res.member(tc.gates[0]); m.Phase != tc.phase || !strings.HasPrefix(m.Message, tc.message) || m.Matches != 1 {
			t.Errorf("%s: %+v, want %d %q", name, m, tc.phase, tc.message)
		}
	}
	if m := ruled(ready("True"), open).member(open); len(m.Needs) != 1 || m.Needs[0].Name != "db" || m.Needs[0].Namespace != "shop" {
		t.Errorf("it needs %+v", m.Needs)
	}
}

func TestMessagesOfConditionActivated(t *testing.T) {
	names := activation.Names{Certificate: "web", Staged: "web-staged", Live: "web-tls"}
	staged := &activation.Leaf{Serial: "2", NotBefore: start.Add(time.Hour), NotAfter: start.AddDate(0, 0, 60)}
	live := &activation.Leaf{Serial: "1", NotAfter: start.AddDate(0, 0, 30)}
	opening := newGate("a", v1alpha1.StateClosed, v1alpha1.GateSpec{})
	opening.Object.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(start.Add(time.Hour)), State: v1alpha1.StateOpened}
	closed := closedGates{opening}
	const ends = " The certificate in use expires at 2026-12-23T12:00:00Z."
	for want, tc := range map[string]struct {
		decision activation.Decision
		closed   closedGates
	}{
		"True Activated: Secret 'web-tls' has the issued certificate." + ends: {activation.Decision{Outcome: activation.Activated, Live: live}, nil},
		"False RolledBack: A user has changed Secret 'web-tls' since the certificate was activated. It stays unchanged until the next issuance." + ends: {
			activation.Decision{Outcome: activation.RolledBack, Live: live}, nil},
		"False NotIssued: There is no certificate in Secret 'web-staged' yet.":              {activation.Decision{Outcome: activation.NotIssued}, nil},
		"False NotYetValid: Certificate 2 is not valid before 2026-11-23T13:00:00Z." + ends: {activation.Decision{Outcome: activation.NotYetValid, Staged: staged, Live: live}, nil},
		"False GateClosed: Certificate 2 waits for gate 'shop/a' (opens at 2026-11-23T13:00:00Z, UTC).": {
			activation.Decision{Outcome: activation.Closed, Staged: staged}, closed},
		"False GateClosed: Certificate 2 waits for gates 'shop/a' (opens at 2026-11-23T13:00:00Z, UTC), 'shop/b'." + ends + " It is replaced at 2026-12-22T12:00:00Z at the latest.": {
			activation.Decision{Outcome: activation.Closed, Staged: staged, Live: live, Recheck: start.AddDate(0, 0, 29)}, append(closed, newGate("b", v1alpha1.StateClosed, v1alpha1.GateSpec{}))},
		"False GateClosed: Certificate 2 waits for a gate that governs it.":                    {activation.Decision{Outcome: activation.Closed, Staged: staged}, nil},
		"False ActivationFailed: Not activated into Secret 'web-tls': it is immutable." + ends: {activation.Decision{Message: "it is immutable", Live: live}, nil},
	} {
		c := activatedCondition(names, tc.decision, tc.closed)
		if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
