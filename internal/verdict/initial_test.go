package verdict_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func allowing(g *v1alpha1.Gate) { g.Spec.InitialReconciliation = v1alpha1.InitialAllow }

// newApps has a Gate govern the Kustomization apps.
func newApps(g *v1alpha1.Gate) {
	g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}
}

// created sets the age of an object at noon.
func created(ago time.Duration) edit {
	return func(obj *target.Object) { obj.SetCreationTimestamp(metav1.NewTime(noon.Add(-ago))) }
}

// applied is an object that was reconciled successfully.
func applied(obj *target.Object) {
	obj.Object["status"] = map[string]any{"lastAppliedRevision": "main@1"}
}

// about returns the effects of Gates on an object at noon.
func about(obj *target.Object, gates ...*v1alpha1.Gate) (all []verdict.Gate) {
	for _, g := range gates {
		newApps(g)
		scope := verdict.Scope{Reaches: func(_, _ string) bool { return true }}
		if is, ok := scope.About(g, &obj.Unstructured, noon); ok {
			all = append(all, is)
		}
	}
	return all
}

func TestInitialReconciliation(t *testing.T) {
	invalid := because(v1alpha1.InvalidSpecReason, "")
	const young = 10 * time.Minute
	app := func(edits ...edit) *target.Object {
		return kustomization("apps", append([]edit{created(young)}, edits...)...)
	}
	held := heldBy("shop/a", suspension)
	others := func(obj *target.Object) {
		heldBy("shop/a", suspension)(obj)
		without(v1alpha1.HeldByAnnotation)(obj)
		suspendedBy("flux")(obj)
	}
	resumed := heldBy("shop/a", map[string]any{"suspend": false})
	for name, tc := range map[string]struct {
		obj     *target.Object
		gates   []*v1alpha1.Gate
		want    string
		changes []func(*verdict.Situation)
	}{
		"is not held while it is new":                    {obj: app(), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "keep exempt, conditions, again in 50m0s"},
		"needs Allow":                                    {obj: app(), gates: []*v1alpha1.Gate{closed("a")}, want: "write held a"},
		"ends with the first success":                    {obj: app(applied), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "write held a"},
		"ends an hour after the creation":                {obj: app(created(time.Hour)), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "write held a"},
		"lasts until a second before that":               {obj: app(created(time.Hour - time.Second)), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "keep exempt, conditions, again in 1s"},
		"is not needed while the gate is open":           {obj: app(), gates: []*v1alpha1.Gate{opened("a", allowing)}, want: "keep free, conditions"},
		"needs a valid spec":                             {obj: app(), gates: []*v1alpha1.Gate{closed("a", allowing, invalid)}, want: "write held a"},
		"needs a valid spec in spite of an exception":    {obj: app(), gates: []*v1alpha1.Gate{closed("a", allowing, invalid, overlaid("x", v1alpha1.StateClosed, time.Hour, ""))}, want: "write held a"},
		"also while an exception closes the gate":        {obj: app(), gates: []*v1alpha1.Gate{opened("a", allowing, overlaid("x", v1alpha1.StateClosed, time.Hour, ""))}, want: "keep exempt, conditions, again in 50m0s"},
		"needs the decision on an edited gate":           {obj: app(held), gates: []*v1alpha1.Gate{closed("a", allowing, edited)}, want: "keep held a, conditions"},
		"needs all closed gates":                         {obj: app(), gates: []*v1alpha1.Gate{closed("a", allowing), closed("b")}, want: "write held b, again in 50m0s"},
		"by two gates":                                   {obj: app(), gates: []*v1alpha1.Gate{closed("a", allowing), closed("b", allowing)}, want: "keep exempt, conditions, again in 50m0s"},
		"of a held object releases it":                   {obj: app(held), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "write exempt, again in 50m0s"},
		"of a held object waits for the lock":            {obj: app(held), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "keep held a, waits for lock, again in 5s", changes: []func(*verdict.Situation){lockers("shop/a")}},
		"of a held object waits for an undecided gate":   {obj: app(held), gates: []*v1alpha1.Gate{closed("a", allowing), opened("b", edited)}, want: "keep held a, conditions, again in 50m0s"},
		"takes no slot":                                  {obj: app(held), gates: []*v1alpha1.Gate{closed("a", allowing, inWaves)}, want: "write exempt, again in 50m0s", changes: []func(*verdict.Situation){noSlot("shop/a")}},
		"of an object that a user suspended":             {obj: app(others), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "keep suspended by others, conditions, again in 50m0s"},
		"of a resumed object keeps it resumed":           {obj: app(resumed, told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon)), gates: []*v1alpha1.Gate{closed("a", allowing, respecting)}, want: "keep resumed a, conditions"},
		"of an object that a suspended gate holds":       {obj: app(held), gates: []*v1alpha1.Gate{closed("a", allowing, suspended)}, want: "keep held a, conditions"},
		"of an object that names a missing gate as well": {obj: app(annotated(v1alpha1.GatesAnnotation, "gone")), gates: []*v1alpha1.Gate{closed("a", allowing)}, want: "write held gone, again in 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			gates := about(tc.obj, tc.gates...)
			if named := verdict.NamedBy(&tc.obj.Unstructured); len(named) > 0 {
				gates = append(gates, verdict.Gate{Name: named[0], Effect: verdict.Missing})
			}
			if got := ruled(verdict.Rule(row{obj: tc.obj, gates: gates, changes: tc.changes}.situation())); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestConditionOfInitialReconciliation(t *testing.T) {
	obj := kustomization("apps", created(10*time.Minute))
	r := rule(obj, about(obj, closed("a", allowing), closed("b", allowing)), modern, noon)
	list := r.Conditions(nil)
	const want = "Not held before its first success, until 2026-11-24T12:50:00Z at the latest, although gates 'shop/a', 'shop/b' are closed."
	if len(list) != 1 || list[0].Status != metav1.ConditionTrue || list[0].Reason != v1alpha1.InitialReconciliationReason || list[0].Message != want {
		t.Errorf("got %+v", list)
	}
	suspends := kustomization("apps", created(10*time.Minute), told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon), func(obj *target.Object) {
		heldBy("", suspension)(obj)
		without(v1alpha1.HeldByAnnotation)(obj)
		suspendedBy("flux")(obj)
	})
	if list := rule(suspends, about(suspends, closed("a", allowing)), modern, noon).Conditions(nil); len(list) != 1 || list[0].Reason != v1alpha1.ResumedReason {
		t.Errorf("suspended by a user: got %+v", list)
	}
}

func TestAuditOfInitialReconciliation(t *testing.T) {
	obj := kustomization("apps", created(10*time.Minute))
	gates := about(obj, closed("a", allowing, audits))
	if r := rule(obj, gates, modern, noon); gates[0].Would != verdict.Open || gates[0].IsInitial() || !r.Recheck.Equal(noon.Add(50*time.Minute)) {
		t.Errorf("got %+v, again at %s", gates[0], r.Recheck)
	}
	if is := about(kustomization("apps", created(time.Hour)), closed("a", allowing, audits)); is[0].Would != verdict.Closed {
		t.Errorf("got %+v after an hour", is[0])
	}
}
