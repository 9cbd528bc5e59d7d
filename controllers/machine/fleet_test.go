package machine

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/machinecerts"
)

// gates is a reader of Gates by name. A nil Gate cannot be read.
type gates map[string]*v1alpha1.Gate

// Get implements client.Reader.
func (g gates) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch found, ok := g[key.Name]; {
	case !ok:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "gates"}, key.Name)
	case found == nil:
		return errBroken
	default:
		found.DeepCopyInto(obj.(*v1alpha1.Gate)) //nolint:forcetypeassert // only Gates are read
		return nil
	}
}

// List implements client.Reader.
func (gates) List(context.Context, client.ObjectList, ...client.ListOption) error { return errBroken }

// stateGate returns a reconciled Gate in a state.
func stateGate(state v1alpha1.State, change func(*v1alpha1.Gate)) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{UID: "uid", Generation: 1}}
	g.Status.ObservedGeneration = 1
	g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: state, Reason: v1alpha1.DefaultReason}
	conditions.MarkFalse(g, v1alpha1.OpenedCondition, v1alpha1.DefaultReason, "Gate is closed")
	if state == opened {
		conditions.MarkTrue(g, v1alpha1.OpenedCondition, v1alpha1.DefaultReason, "Gate is open")
	}
	if change != nil {
		change(g)
	}
	return g
}

// A refresh begins only while all Gates are open, except shortly before the expiry if a Gate is closed and has a safety margin.
func TestGatesDecideWhetherRefreshesBegin(t *testing.T) {
	strict := func(g *v1alpha1.Gate) { g.Spec.Certificates = &v1alpha1.CertificatePolicy{Strict: true} }
	margin := func(d time.Duration) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) {
			g.Spec.Certificates = &v1alpha1.CertificatePolicy{SafetyMargin: v1alpha1.NewDuration(d)}
		}
	}
	const forbidden, undecided = "closed, strict, ", "undecided, "
	for name, tc := range map[string]struct {
		ttl   string
		other *v1alpha1.Gate
		want  string
	}{
		"open":                     {"1y", stateGate(opened, nil), "open"},
		"closed":                   {"1y", stateGate(closed, nil), "closed, a day before"},
		"closed, with a margin":    {"1y", stateGate(closed, margin(time.Hour)), "closed, 1h0m0s before"},
		"closed, for a short time": {"6d", stateGate(closed, margin(28*time.Hour)), "closed, a day before"},
		"closed, and strict":       {"1y", stateGate(closed, strict), "closed, strict"},
		"suspended":                {"1y", stateGate(opened, func(g *v1alpha1.Gate) { g.Spec.Suspend = true }), forbidden + "GateNotReady"},
		"with mode Audit":          {"1y", stateGate(opened, func(g *v1alpha1.Gate) { g.Spec.Mode = v1alpha1.ModeAudit }), forbidden + "GateNotReady"},
		"missing":                  {"1y", nil, forbidden + "GateNotFound"},
		"new":                      {"1y", stateGate(opened, func(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} }), undecided + "GateNotReady"},
		"edited":                   {"1y", stateGate(opened, func(g *v1alpha1.Gate) { g.Generation++ }), undecided + "GateNotReady"},
		"invalid": {"1y", stateGate(opened, func(g *v1alpha1.Gate) {
			conditions.MarkTrue(g, v1alpha1.OpenedCondition, v1alpha1.InvalidSpecReason, "Gate is open")
		}), forbidden + "GateNotReady"},
		"deleted": {"1y", stateGate(opened, func(g *v1alpha1.Gate) {
			g.DeletionTimestamp = &metav1.Time{Time: start}
		}), forbidden + "GateNotFound"},
		"requested to close": {"1y", stateGate(opened, func(g *v1alpha1.Gate) {
			g.Annotations = map[string]string{v1alpha1.CloseRequestedAtAnnotation: start.Format(time.RFC3339)}
		}), undecided + "GateNotReady"},
		"due to close": {"1y", stateGate(opened, func(g *v1alpha1.Gate) {
			g.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: closed, Reason: v1alpha1.DefaultReason}
		}), "closed, a day before"},
	} {
		all := gates{"nights": stateGate(opened, nil)}
		if tc.other != nil {
			all["other"] = tc.other
		}
		f := &fleet{pass: &pass{Reconciler: &Reconciler{APIReader: all}, now: start}, obj: &v1alpha1.MachineCertificateRefresh{
			Spec: v1alpha1.MachineCertificateRefreshSpec{TTL: tc.ttl, GateRefs: []v1alpha1.GateReference{{Name: "nights"}, {Name: "other"}}},
		}}
		if err := f.judge(t.Context()); err != nil {
			t.Error(err)
		}
		got := "open"
		switch {
		case f.waits:
			got = "undecided"
		case f.policy.Strict:
			got = "closed, strict"
		case f.policy.Open && !f.opened.Equal(start):
			got = "open since " + f.opened.String()
		case !f.policy.Open && f.policy.Margin == day:
			got = "closed, a day before"
		case !f.policy.Open:
			got = fmt.Sprintf("closed, %s before", f.policy.Margin)
		}
		if f.reason != "" {
			got += ", " + f.reason
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		all["other"] = nil
		if err := f.judge(t.Context()); err == nil {
			t.Errorf("%s: no error although a Gate cannot be read", name)
		}
	}
}

// Only annotations that this controller has applied are its own.
func TestStateOfMachine(t *testing.T) {
	record := machinecerts.Record{Refresh: "ns/nodes", RequestedAt: start, Expiry: start.Add(day)}
	owned := func(manager string, operation metav1.ManagedFieldsOperationType) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(
			`{"f:metadata":{"f:annotations":{"f:` + requestAnnotation + `":{},"f:` + v1alpha1.RefreshAnnotation + `":{}}}}`,
		)}}
	}
	want := machinecerts.Machine{
		Name: "ns/a", Cluster: "ns/c1", ControlPlane: true, Selected: true, Deleting: true, Expiry: "tomorrow", Status: "done",
		Record: &record, Request: machinecerts.Ours,
	}
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		ours   bool
	}{
		"applied":       {owned(v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply), true},
		"updated":       {owned(v1alpha1.FieldManager, metav1.ManagedFieldsOperationUpdate), false},
		"from a backup": {owned("velero", metav1.ManagedFieldsOperationApply), false},
	} {
		m := newMachine("v1beta2")
		m.Namespace, m.Name, m.DeletionTimestamp, m.ManagedFields = "ns", "a", &metav1.Time{Time: start}, tc.fields
		m.Labels = map[string]string{clusterNameLabel: "c1", controlPlaneLabel: ""}
		m.Annotations = map[string]string{
			expiryAnnotation: "tomorrow", statusAnnotation: "done", requestAnnotation: "1y", v1alpha1.RefreshAnnotation: record.String(),
		}
		if want.Record, want.Request = nil, machinecerts.Others; tc.ours {
			want.Record, want.Request = &record, machinecerts.Ours
		}
		got := machineState(m, true)
		if got.Record != nil && want.Record != nil && *got.Record == record {
			got.Record = want.Record
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		delete(m.Annotations, requestAnnotation)
		if got := machineState(m, true).Request; got != machinecerts.None {
			t.Errorf("%s: without a request it is %v", name, got)
		}
	}
}
