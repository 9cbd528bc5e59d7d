package controllers_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// settledTarget returns a Kustomization that a Gate holds and that needs no write.
func settledTarget(name string, by verdict.Gate) *target.Object {
	obj := inGit("apps", name, nil)
	obj.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: by.Name})
	obj.Object["spec"].(map[string]any)["suspend"] = true //nolint:forcetypeassert // see inGit
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: obj.GetAPIVersion(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.HeldByAnnotation + `":{}}},"f:spec":{"f:suspend":{}}}`),
	}})
	at := metav1.NewTime(start)
	obj.SetConditions([]metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ReconciliationSucceeded", Message: "Applied revision: main@sha1:1f0a", LastTransitionTime: at},
		{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "HealthCheckSucceeded", Message: "Health check passed in 12s", LastTransitionTime: at},
		{
			Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.GateClosedReason,
			Message: verdict.Explain([]verdict.Gate{by}, start), LastTransitionTime: at,
		},
	})
	return obj
}

// oneGate is a cache with one Gate, which costs no time.
type oneGate struct {
	client.Client
	gate *v1alpha1.Gate
}

// List implements client.Client.
func (c oneGate) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.GateList).Items = []v1alpha1.Gate{*c.gate} //nolint:forcetypeassert // there is no other
	return nil
}

// oneTarget has one target.
type oneTarget struct {
	view.TargetReader
	obj *target.Object
}

// Get implements TargetReader.
func (r oneTarget) Get(context.Context, target.Key) (*target.Object, error) { return r.obj, nil }

// Definition implements TargetReader.
func (r oneTarget) Definition(schema.GroupKind) target.Definition { return target.Definition{} }

// BenchmarkSettled measures the reconciliation of a target that needs no write: its Gate has no overlays, or as many as it can have, all for
// other targets. part=overlays is the search for overlays if there are none, which should be a negligible part of overlays=none.
func BenchmarkSettled(b *testing.B) {
	b.Run("overlays=none", func(b *testing.B) { settled(b, nil) })
	var targets []v1alpha1.RequestTarget
	for i := range v1alpha1.MaxRequestTargets {
		targets = append(targets, v1alpha1.RequestTarget{Kind: "Kustomization", Name: fmt.Sprintf("other-%d", i)})
	}
	others := make([]v1alpha1.Overlay, v1alpha1.MaxEffectiveExceptions+v1alpha1.MaxLimitedRequests)
	for i := range others {
		others[i] = v1alpha1.Overlay{RequestedBy: fmt.Sprint(i), State: v1alpha1.StateOpened, Targets: v1alpha1.RequestOverlayTargets(targets)}
	}
	b.Run("overlays=most", func(b *testing.B) { settled(b, others) })
	b.Run("overlays=none/part=overlays", func(b *testing.B) {
		b.ReportAllocs()
		gate, obj := &v1alpha1.Gate{}, inGit("apps", "app", nil)
		for b.Loop() {
			if (verdict.Scope{}).ForTarget(gate, &obj.Unstructured) != gate {
				b.Fatal("the gate is copied")
			}
		}
	})
}

func settled(b *testing.B, overlays []v1alpha1.Overlay) {
	b.Helper()
	b.ReportAllocs()
	gate := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "production"}, Spec: v1alpha1.GateSpec{Targets: []v1alpha1.TargetReference{all()}}}
	gate.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.DefaultReason}}
	gate.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: v1alpha1.StateClosed, Reason: v1alpha1.DefaultReason}
	gate.Status.Overlays = overlays
	by := verdict.Governing("apps/production", gate, start)
	obj := settledTarget("app", by)
	c := &controllers.Gating{Client: oneGate{gate: gate}, Targets: oneTarget{obj: obj}, Locks: &controllertest.LiveLocks{}, Clock: clocktesting.NewFakePassiveClock(start), GateMetrics: &events.Metrics{}}
	m := controllers.NewState()
	r := c.NewReconcilers(m, controllertest.NewQueues(b)).Targets
	for b.Loop() {
		if _, err := r.Reconcile(context.Background(), target.KeyOf(obj)); err != nil {
			b.Fatal(err)
		}
	}
	if sums := m.Summary.Sums(summary.KeyFor(gate)); fmt.Sprint(sums.Total, sums.Held, sums.Pending) != "1 1 0" {
		b.Fatalf("%+v", sums)
	}
}
