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

// newApps sets up a Gate that governs the Kustomization apps.
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
	const exempt = "keep exempt, conditions, again in 50m0s"
	closes := overlaid("x", v1alpha1.StateClosed, time.Hour, "")
	wasHeld := told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon)
	gates := func(gates ...*v1alpha1.Gate) []*v1alpha1.Gate { return gates }
	changes := func(changes ...func(*verdict.Situation)) []func(*verdict.Situation) { return changes }
	a := gates(closed("a", allowing))
	for name, tc := range map[string]struct {
		obj     *target.Object
		gates   []*v1alpha1.Gate
		want    string
		changes []func(*verdict.Situation)
	}{
		"is not held while it is new":                    {app(), a, exempt, nil},
		"needs Allow":                                    {app(), gates(closed("a")), "write held a", nil},
		"ends with the first success":                    {app(applied), a, "write held a", nil},
		"ends an hour after the creation":                {app(created(time.Hour)), a, "write held a", nil},
		"lasts until a second before that":               {app(created(time.Hour - time.Second)), a, "keep exempt, conditions, again in 1s", nil},
		"is not needed while the gate is open":           {app(), gates(opened("a", allowing)), "keep free, conditions", nil},
		"needs a valid spec":                             {app(), gates(closed("a", allowing, invalid)), "write held a", nil},
		"needs a valid spec in spite of an exception":    {app(), gates(closed("a", allowing, invalid, closes)), "write held a", nil},
		"also while an exception closes the gate":        {app(), gates(opened("a", allowing, closes)), exempt, nil},
		"needs the decision on an edited gate":           {app(held), gates(closed("a", allowing, edited)), "keep held a, conditions", nil},
		"needs all closed gates":                         {app(), gates(closed("a", allowing), closed("b")), "write held b, again in 50m0s", nil},
		"by two gates":                                   {app(), gates(closed("a", allowing), closed("b", allowing)), exempt, nil},
		"of a held object releases it":                   {app(held), a, "write exempt, again in 50m0s", nil},
		"of a held object waits for the lock":            {app(held), a, "keep held a, waits for lock, again in 5s", changes(lockers("shop/a"))},
		"of a held object waits for an undecided gate":   {app(held), gates(closed("a", allowing), opened("b", edited)), "keep held a, conditions, again in 50m0s", nil},
		"takes no slot":                                  {app(held), gates(closed("a", allowing, inWaves)), "write exempt, again in 50m0s", changes(noSlot("shop/a"))},
		"of an object that a user suspended":             {app(others), a, "keep suspended by others, conditions, again in 50m0s", nil},
		"of a resumed object keeps it resumed":           {app(resumed, wasHeld), gates(closed("a", allowing, respecting)), "keep resumed a, conditions", nil},
		"of an object that a suspended gate holds":       {app(held), gates(closed("a", allowing, suspended)), "keep held a, conditions", nil},
		"of an object that names a missing gate as well": {app(annotated(v1alpha1.GatesAnnotation, "gone")), a, "write held gone, again in 10m0s", nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := about(tc.obj, tc.gates...)
			if named := verdict.NamedBy(&tc.obj.Unstructured); len(named) > 0 {
				all = append(all, verdict.Gate{Name: named[0], Effect: verdict.Missing})
			}
			if got := ruled(verdict.Rule(row{obj: tc.obj, gates: all, changes: tc.changes}.situation())); got != tc.want {
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
	if len(list) != 1 || list[0].Status != metav1.ConditionTrue || list[0].Reason != v1alpha1.InitialReconciliationReason {
		t.Fatalf("got %+v", list)
	}
	if list[0].Message != want {
		t.Errorf("got %q", list[0].Message)
	}
	wasHeld := told(metav1.ConditionFalse, v1alpha1.GateClosedReason, noon)
	suspends := kustomization("apps", created(10*time.Minute), wasHeld, func(obj *target.Object) {
		heldBy("", suspension)(obj)
		without(v1alpha1.HeldByAnnotation)(obj)
		suspendedBy("flux")(obj)
	})
	list = rule(suspends, about(suspends, closed("a", allowing)), modern, noon).Conditions(nil)
	if len(list) != 1 || list[0].Reason != v1alpha1.ResumedReason {
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
