package verdict_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestRulingReadsTarget(t *testing.T) {
	respected := governing(closed("a", respecting))
	for name, test := range map[string]struct {
		obj   *target.Object
		gates []verdict.Gate
		want  verdict.Step
		letGo bool
	}{
		"free":                 {kustomization("apps"), governing(closed("a")), verdict.Step{Outcome: verdict.Held, Write: true, Hold: true, Names: []string{"shop/a"}}, false},
		"held":                 {kustomization("apps", heldBy("shop/a", suspension)), governing(closed("a")), verdict.Step{Outcome: verdict.Held, Hold: true, Names: []string{"shop/a"}}, false},
		"let go":               {kustomization("apps", heldBy("shop/a", suspension)), governing(opened("a")), verdict.Step{Write: true}, true},
		"one of two lets go":   {kustomization("apps", heldBy("shop/a,shop/b", suspension)), governing(opened("a"), closed("b")), verdict.Step{Outcome: verdict.Held, Write: true, Hold: true, Names: []string{"shop/b"}}, false},
		"somebody else's name": {kustomization("apps", annotated(v1alpha1.HeldByAnnotation, "shop/a")), nil, verdict.Step{Write: true}, false},
		"resumed since": {
			kustomization("apps", annotated(v1alpha1.HeldByAnnotation, "shop/a"), told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon.Add(-time.Minute))),
			respected, verdict.Step{Outcome: verdict.Resumed, Names: []string{"shop/a"}}, false},
		"exempt so far": {
			certificate(annotated(v1alpha1.HeldByAnnotation, "shop/a"), told(metav1.ConditionTrue, v1alpha1.ExpiryImminentReason, noon.Add(-time.Minute))),
			respected, verdict.Step{Outcome: verdict.Held, Write: true, Hold: true, Names: []string{"shop/a"}}, false},
		"resumed before it closed again": {
			kustomization("apps", annotated(v1alpha1.HeldByAnnotation, "shop/a"), told(metav1.ConditionTrue, v1alpha1.ResumedReason, noon.Add(-2*time.Hour))),
			respected, verdict.Step{Outcome: verdict.Held, Write: true, Hold: true, Names: []string{"shop/a"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rule(test.obj, test.gates, modern, noon)
			if !reflect.DeepEqual(r.Step, test.want) {
				t.Errorf("got  %+v\nwant %+v", r.Step, test.want)
			}
			if got := r.Releases(); got != test.letGo {
				t.Errorf("lets go is %t", got)
			}
		})
	}
}

func TestTargetWithoutSpaceForNamesIsHeldAnyway(t *testing.T) {
	both := governing(closed("a"), closed("b"))
	// 256 KiB, less what the key of the annotation and one name take.
	room := func(names string) edit {
		return annotated("big", strings.Repeat("x", 256<<10-len("big")-len(v1alpha1.HeldByAnnotation)-len(names)))
	}
	firstOpens := governing(opened("a"), closed("b"))
	for name, test := range map[string]struct {
		obj   *target.Object
		gates []verdict.Gate
		want  verdict.Step
	}{
		"for both":                     {kustomization("apps", room("shop/a,shop/b")), both, verdict.Step{Outcome: verdict.Held, Write: true, Hold: true, Names: []string{"shop/a", "shop/b"}}},
		"for one, which is there":      {kustomization("apps", room("shop/a"), heldBy("shop/a", suspension)), both, verdict.Step{Outcome: verdict.Held, Hold: true, Names: []string{"shop/a"}}},
		"for one, which is not":        {kustomization("apps", room("shop/a")), both, verdict.Step{Outcome: verdict.Held, Write: true, Hold: true}},
		"for none, and it is held":     {kustomization("apps", room(""), heldBy("", suspension)), both, verdict.Step{Outcome: verdict.Held, Hold: true}},
		"for one, whose gate opens":    {kustomization("apps", room("shop/a"), heldBy("shop/a", suspension)), firstOpens, verdict.Step{Outcome: verdict.Held, Write: true, Hold: true, Names: []string{"shop/b"}}},
		"for none, and one gate opens": {kustomization("apps", room(""), heldBy("", suspension)), firstOpens, verdict.Step{Outcome: verdict.Held, Hold: true}},
		"for none, and both open":      {kustomization("apps", room(""), heldBy("", suspension)), governing(opened("a"), opened("b")), verdict.Step{Write: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := rule(test.obj, test.gates, target.Definition{}, noon).Step
			if len(got.Names) == 0 {
				got.Names = nil
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestNamesRemovedByStep(t *testing.T) {
	obj := kustomization("apps", heldBy("shop/a,shop/b", suspension))
	r := rule(obj, governing(opened("a"), closed("b")), target.Definition{}, noon)
	if got := r.Dropped(); !slices.Equal(got, []string{"shop/a"}) {
		t.Errorf("got %v", got)
	}
}

// held returns a Certificate that Gates hold, as they would.
func held(gates []verdict.Gate, definition target.Definition, edits ...edit) *target.Object {
	obj := certificate(edits...)
	r := rule(obj, gates, definition, noon)
	if !r.Step.Hold || !r.Step.Write {
		return obj
	}
	// cert-manager has not seen it yet.
	return certificate(append(edits, heldBy(target.FormatHeldBy(r.Step.Names), r.Plan.Lever), func(obj *target.Object) { obj.SetGeneration(2) })...)
}

func TestRenewalConditionsOfCertificate(t *testing.T) {
	const byHand = " To renew it manually: cmctl renew -n shop www"
	opens := func(g *v1alpha1.Gate) {
		next(10*time.Hour, v1alpha1.StateOpened)(g)
		g.Status.NextTransition.Period = "nights"
		g.Spec.OpenPeriods = []v1alpha1.Period{{Name: "nights", TimeZone: "Europe/Oslo"}, {Name: "days", TimeZone: "Asia/Tokyo"}}
	}
	expiring := func(obj *target.Object) {
		_ = setStatus(obj, "notAfter", noon.Add(time.Hour).Format(time.RFC3339))
	}
	ignored := func(obj *target.Object) {
		heldBy("shop/a", map[string]any{"renewal": map[string]any{"policy": "Disabled"}})(obj)
		obj.SetConditions(append(obj.GetConditions(), metav1.Condition{Type: v1alpha1.RenewalConfigInvalidCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.WindowIgnoredReason}))
	}
	strict := letting(time.Hour, true)
	for name, test := range map[string]struct {
		gates      []verdict.Gate
		definition target.Definition
		edits      []edit
		want       []string
	}{
		"the gate is open": {governing(opened("a")), modern, nil, nil},
		"deferred": {governing(closed("a")), modern, nil, []string{
			"RenewalDeferred OutsideAllowedWindow: Gate 'shop/a' is closed. It is renewed at 2027-02-10T12:00:00Z at the latest." + byHand}},
		"the gate opens": {governing(closed("a", opens)), modern, nil, []string{
			"RenewalDeferred OutsideAllowedWindow: Gate 'shop/a' is closed. Next allowed renewal window starts at 2026-11-24T23:00:00+01:00 (Europe/Oslo). It is renewed at 2027-02-10T12:00:00Z at the latest." + byHand}},
		"one of two gates opens": {governing(closed("a", opens), closed("b")), modern, nil, []string{
			"RenewalDeferred OutsideAllowedWindow: Gates 'shop/a', 'shop/b' are closed. Next allowed renewal window starts at 2026-11-24T23:00:00+01:00 (Europe/Oslo), when gate 'shop/a' opens. It is renewed at 2027-02-10T12:00:00Z at the latest." + byHand}},
		"strict": {governing(closed("a", strict)), modern, nil, []string{
			"RenewalDisabled UserConfigured: Automatic renewal is disabled: gate 'shop/a' is closed and no opening is scheduled. Certificate expires at 2027-02-11T12:00:00Z." + byHand}},
		"strict, and it opens": {governing(closed("a", strict, opens)), modern, nil, []string{
			"RenewalDeferred OutsideAllowedWindow: Gate 'shop/a' is closed. Next allowed renewal window starts at 2026-11-24T23:00:00+01:00 (Europe/Oslo). Certificate expires at 2027-02-11T12:00:00Z." + byHand}},
		"strict, with an old cert-manager": {governing(closed("a", strict)), old, nil, []string{
			"RenewalDisabled UserConfigured: Automatic renewal is disabled: gate 'shop/a' is closed and no opening is scheduled. Certificate expires at 2027-02-11T12:00:00Z." + byHand,
			"RenewalConfigInvalid UnsupportedVersion: A gate is strict, but this release of cert-manager cannot disable the renewal. It is deferred as long as possible. Install cert-manager v1.21.1 or later."}},
		"it expires": {governing(closed("a")), modern, []edit{expiring, annotated(v1alpha1.HeldByAnnotation, "shop/a")}, []string{
			"RenewalWindowBypassed ExpiryImminent: Certificate expires at 2026-11-24T13:00:00Z. It is renewed although gate 'shop/a' is closed." + byHand}},
		"cert-manager ignores the window": {governing(closed("a")), modern, []edit{ignored}, []string{
			"RenewalDeferred OutsideAllowedWindow: Gate 'shop/a' is closed. It is renewed at 2027-02-10T12:00:00Z at the latest." + byHand,
			"RenewalConfigInvalid WindowIgnored: cert-manager has not scheduled the renewal for the deadline. The renewal is disabled instead, and the gating-controller releases the certificate at the deadline."}},
		"somebody has resumed it": {governing(closed("a", respecting)), modern, []edit{
			annotated(v1alpha1.HeldByAnnotation, "shop/a"), told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon.Add(-time.Minute))}, nil},
		"the spec of the gate is invalid": {governing(closed("a", because(v1alpha1.InvalidSpecReason, ""))), modern, nil, []string{
			"RenewalDeferred OutsideAllowedWindow: Gate 'shop/a' is closed. It is renewed at 2027-02-10T12:00:00Z at the latest." + byHand,
			"RenewalConfigInvalid InvalidSpec: The spec of gate 'shop/a' is invalid, so the renewal is not changed: "}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := held(test.gates, test.definition, test.edits...)
			r := rule(obj, test.gates, test.definition, noon)
			if r.Step.Write {
				t.Fatalf("something is left to write: %+v", r.Step)
			}
			var got []string
			for _, c := range r.Renewal() {
				got = append(got, c.Type+" "+c.Reason+": "+c.Message)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestAllTargetConditions(t *testing.T) {
	activated := &metav1.Condition{Type: v1alpha1.ActivatedCondition, Status: metav1.ConditionTrue}
	issuing := func(obj *target.Object) {
		obj.SetConditions(append(obj.GetConditions(), metav1.Condition{Type: "Issuing", Status: metav1.ConditionTrue}))
	}
	deferred := func(obj *target.Object) {
		obj.SetConditions(append(obj.GetConditions(), metav1.Condition{Type: v1alpha1.RenewalDeferredCondition, Status: metav1.ConditionTrue, Reason: "Before"}))
	}
	for name, test := range map[string]struct {
		obj       *target.Object
		gates     []verdict.Gate
		activated *metav1.Condition
		want      []string
	}{
		"nothing governs it":     {kustomization("apps"), nil, nil, nil},
		"held":                   {kustomization("apps", heldBy("shop/a", suspension)), governing(closed("a")), nil, []string{"Approved"}},
		"a certificate":          {held(governing(closed("a")), modern), governing(closed("a")), nil, []string{"Approved", "RenewalDeferred"}},
		"it is activated":        {certificate(annotated(v1alpha1.ActivateIntoAnnotation, "live")), governing(closed("a")), activated, []string{"Activated"}},
		"it is issued first":     {certificate(issuing, deferred), governing(closed("a")), nil, []string{"RenewalDeferred"}},
		"it is not governed now": {certificate(deferred), nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range rule(test.obj, test.gates, modern, noon).Conditions(test.activated) {
				got = append(got, c.Type)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// paced has a Gate release one target per minute.
func paced(g *v1alpha1.Gate) { g.Spec.Release = &v1alpha1.ReleasePolicy{PerMinute: 1} }

func TestLateCertificateNeedsNoSlot(t *testing.T) {
	gates := governing(opened("a", letting(24*time.Hour, true), paced))
	for name, test := range map[string]struct {
		obj  *target.Object
		late bool
		when time.Time
	}{
		"not yet":            {held(governing(closed("a")), modern), false, noon.Add(78 * 24 * time.Hour)},
		"another kind":       {kustomization("apps", heldBy("shop/a", suspension)), false, time.Time{}},
		"it is about to end": {held(governing(closed("a", letting(time.Minute, false))), modern, func(obj *target.Object) { _ = setStatus(obj, "notAfter", noon.Add(6*time.Hour).Format(time.RFC3339)) }), true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := verdict.Rule(verdict.Situation{Object: test.obj, Gates: gates, Definition: modern, Now: noon, NoSlot: []string{"shop/a"}})
			if waits := r.Wait == verdict.ForSlot; waits == test.late || r.Releases() != test.late || !r.Recheck.Equal(test.when) {
				t.Errorf("waits for %d, releases is %t, next at %s", r.Wait, r.Releases(), r.Recheck)
			}
		})
	}
}
