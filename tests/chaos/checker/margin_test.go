package checker

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// certificate returns a Certificate whose renewal a Gate holds. With a margin of an hour, its margin begins at noon.
func certificate(cron string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Certificate",
		"spec": map[string]any{"renewal": map[string]any{"policy": "RenewBefore", "windows": []any{map[string]any{"cron": cron}}}},
		"status": map[string]any{
			"notBefore": minute(-300).Format(time.RFC3339), "notAfter": minute(60).Format(time.RFC3339),
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Approved", "status": "False"}},
		},
	}}
	obj.SetNamespace("ns")
	obj.SetUID("c")
	obj.SetResourceVersion("2")
	obj.SetAnnotations(map[string]string{heldByAnnotation: "ns/g"})
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: controller, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewal":{}}}`)}})
	return obj
}

func holder(change func(*v1alpha1.GateSpec)) v1alpha1.Gate {
	g := v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Certificate", Name: "*"}}}}
	g.Name, g.Namespace, g.UID = "g", "ns", "g"
	if change != nil {
		change(&g.Spec)
	}
	return g
}

func TestRenewalIsHeldUntilMarginAtMost(t *testing.T) {
	small := func(s *v1alpha1.GateSpec) {
		s.Certificates = &v1alpha1.CertificatePolicy{SafetyMargin: &v1alpha1.Duration{Duration: SmallMargin}}
	}
	disabled := certificate("")
	disabled.Object["spec"] = map[string]any{"renewal": map[string]any{"policy": "Disabled"}}
	status := certificate("0 12 22 11 *")
	_ = unstructured.SetNestedField(status.Object, minute(10).Format(time.RFC3339), "status", "renewalTime")
	for name, c := range map[string]struct {
		target *unstructured.Unstructured
		gate   v1alpha1.Gate
		want   bool
	}{
		"until the margin":                   {target: certificate("0 12 22 11 *"), gate: holder(nil)},
		"ten minutes later":                  {target: certificate("10 12 22 11 *"), gate: holder(nil), want: true},
		"the margin is smaller":              {target: certificate("30 12 22 11 *"), gate: holder(small)},
		"later than the smaller one":         {target: certificate("31 12 22 11 *"), gate: holder(small), want: true},
		"the window is outside its lifetime": {target: certificate("0 12 22 10 *"), gate: holder(nil), want: true},
		"only the controller renews it":      {target: disabled, gate: holder(nil)},
		"the status of cert-manager differs": {target: status, gate: holder(nil), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			check := newCheck(World{Gates: []v1alpha1.Gate{c.gate}}, log, NewHistory(log), noon.Add(-time.Hour))
			check.target(c.target)
			if got := strings.Join(check.wrong, "\n"); (got != "") != c.want || c.want && !strings.Contains(got, "is held until") {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestSuspendedGateExcusesNoOtherCertificate(t *testing.T) {
	suspend := func(s *v1alpha1.GateSpec) { s.Suspend = true }
	elsewhere := func(s *v1alpha1.GateSpec) { s.Suspend, s.Targets = true, nil }
	unnamed := certificate("0 12 22 11 *")
	unnamed.SetAnnotations(nil)
	for name, c := range map[string]struct {
		target *unstructured.Unstructured
		gate   v1alpha1.Gate
		want   string
	}{
		"the gate governs it":         {unnamed, holder(suspend), ""},
		"the gate holds it":           {certificate("0 12 22 11 *"), holder(elsewhere), ""},
		"the gate does not affect it": {unnamed, holder(elsewhere), "no gate is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			check := newCheck(World{Gates: []v1alpha1.Gate{c.gate}}, log, NewHistory(log), noon.Add(-time.Hour))
			check.target(c.target)
			if got := strings.Join(check.wrong, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestHoldPastMarginIsFound(t *testing.T) {
	gate := func(suspend bool) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"kind": "Gate", "spec": map[string]any{"default": "closed", "suspend": suspend}}}
		obj.SetNamespace("ns")
		obj.SetName("g")
		obj.SetUID("g")
		obj.SetResourceVersion("1")
		return obj
	}
	free := certificate("")
	free.SetResourceVersion("3")
	free.SetManagedFields(nil)
	for name, c := range map[string]struct {
		gate *unstructured.Unstructured
		// until is how many seconds after the start of the margin it is released, or checked.
		until     int
		released  bool
		disturbed []int
		want      bool
	}{
		"released at once":                   {gate: gate(false), until: 1, released: true},
		"released late":                      {gate: gate(false), until: 20, released: true, want: true},
		"still held":                         {gate: gate(false), until: 20, want: true},
		"no replica was running":             {gate: gate(false), until: 20, disturbed: []int{-1, 3}, released: true},
		"no replica was running long before": {gate: gate(false), until: 20, disturbed: []int{-60}, released: true, want: true},
		"the replicas were down only later":  {gate: gate(false), until: 20, disturbed: []int{12}, released: true, want: true},
		"the gate is suspended":              {gate: gate(true), until: 20, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			h := NewHistory(log)
			h.Saw(c.gate, false, noon.Add(-time.Hour))
			h.Saw(certificate("0 12 22 11 *"), false, noon.Add(-time.Hour))
			for _, second := range c.disturbed {
				log.Disturbed(noon.Add(time.Duration(second) * time.Second))
			}
			until := noon.Add(time.Duration(c.until) * time.Second)
			if c.released {
				h.Saw(free, false, until)
			}
			for range 2 { // the violation is reported each time
				if got := strings.Join(h.Review(until), "\n"); strings.Contains(got, "held past its margin") != c.want {
					t.Errorf("got %q", got)
				}
			}
		})
	}
}

func TestExceptionStatusIsChecked(t *testing.T) {
	exception := func(active metav1.ConditionStatus, reason string) v1alpha1.GateException {
		e := v1alpha1.GateException{Spec: v1alpha1.GateExceptionSpec{ValidFrom: minute(-10), ValidUntil: minute(10)}}
		e.Name, e.Namespace, e.UID, e.Spec.GateRef.Name = "e", "ns", "e", "g"
		e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ActiveCondition, Status: active, Reason: reason}}
		return e
	}
	over := exception(metav1.ConditionTrue, v1alpha1.InForceReason)
	over.Spec.ValidUntil = minute(0)
	unseen := exception(metav1.ConditionTrue, v1alpha1.InForceReason)
	unseen.Generation = 1
	mute := exception("", "")
	mute.Status.Conditions = nil
	suspended := holder(func(s *v1alpha1.GateSpec) { s.Suspend = true })
	for name, c := range map[string]struct {
		exception v1alpha1.GateException
		gates     []v1alpha1.Gate
		want      string
	}{
		"the exception applies":               {exception(metav1.ConditionTrue, v1alpha1.InForceReason), []v1alpha1.Gate{holder(nil)}, ""},
		"the exception has no condition":      {mute, []v1alpha1.Gate{holder(nil)}, "has no condition Active"},
		"the condition is outdated":           {exception(metav1.ConditionFalse, v1alpha1.PendingReason), []v1alpha1.Gate{holder(nil)}, "want true with reason \"InForce\""},
		"the reason is outdated":              {exception(metav1.ConditionTrue, v1alpha1.PendingReason), []v1alpha1.Gate{holder(nil)}, "want true with reason \"InForce\""},
		"the gate does not exist":             {exception(metav1.ConditionFalse, v1alpha1.GateNotFoundReason), nil, ""},
		"the gate is suspended":               {exception(metav1.ConditionTrue, v1alpha1.GateNotReadyReason), []v1alpha1.Gate{suspended}, "want false"},
		"expired early":                       {exception(metav1.ConditionFalse, v1alpha1.ExpiredReason), []v1alpha1.Gate{suspended}, "want false with reason \"\""},
		"in force, but the gate is suspended": {exception(metav1.ConditionFalse, v1alpha1.InForceReason), []v1alpha1.Gate{suspended}, "want false with reason \"\""},
		"the exception has ended":             {over, []v1alpha1.Gate{holder(nil)}, "want false with reason \"Expired\""},
		"the spec is not observed":            {unseen, []v1alpha1.Gate{holder(nil)}, "was observed"},
	} {
		t.Run(name, func(t *testing.T) {
			log := NewLog()
			check := newCheck(World{Gates: c.gates, Exceptions: []v1alpha1.GateException{c.exception}}, log, NewHistory(log), noon)
			check.exception(&c.exception)
			if got := strings.Join(check.wrong, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
