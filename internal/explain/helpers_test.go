package explain_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/explain"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// edit changes an object.
type edit func(*unstructured.Unstructured)

func newObject(apiVersion, kind, name string, edits ...edit) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{}}}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace("shop")
	obj.SetName(name)
	for _, edit := range edits {
		edit(obj)
	}
	return obj
}

func kustomization(edits ...edit) *unstructured.Unstructured {
	return newObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "apps", edits...)
}

// set sets a field, given as path and value.
func set(value any, path ...string) edit {
	return func(obj *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func annotated(name, value string) edit { return set(value, "metadata", "annotations", name) }

func labelled(name, value string) edit { return set(value, "metadata", "labels", name) }

// owns makes a field manager the owner of fields, given as in managedFields.
func owns(manager, operation, fields string) edit {
	return func(obj *unstructured.Unstructured) {
		at := metav1.NewTime(noon.Add(-time.Minute))
		obj.SetManagedFields(append(obj.GetManagedFields(), metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Time: &at,
		}))
	}
}

// suspendedBy suspends an object with a field manager.
func suspendedBy(manager string) edit {
	return func(obj *unstructured.Unstructured) {
		set(true, "spec", "suspend")(obj)
		owns(manager, "Update", `{"f:spec":{"f:suspend":{}}}`)(obj)
	}
}

// named puts the names of Gates on an object with our field manager.
func named(gates, fields string) edit {
	return func(obj *unstructured.Unstructured) {
		annotated(v1alpha1.HeldByAnnotation, gates)(obj)
		owns(v1alpha1.FieldManager, "Apply", `{"f:metadata":{"f:annotations":{"f:`+v1alpha1.HeldByAnnotation+`":{}}}`+fields+`}`)(obj)
	}
}

// heldBy holds an object for Gates.
func heldBy(gates string) edit {
	return func(obj *unstructured.Unstructured) {
		set(true, "spec", "suspend")(obj)
		named(gates, `,"f:spec":{"f:suspend":{}}`)(obj)
	}
}

// approved sets the condition Approved of an object.
func approved(status, reason string) edit {
	return set([]any{map[string]any{
		"type": v1alpha1.ApprovedCondition, "status": status, "reason": reason, "lastTransitionTime": noon.Add(-time.Minute).Format(time.RFC3339),
	}}, "status", "conditions")
}

// change changes a Gate.
type change func(*v1alpha1.Gate)

// newGate returns a Gate in namespace shop that governs the Kustomization apps. It has been in its default state for an hour.
func newGate(name string, state v1alpha1.State, changes ...change) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	g.Spec.Default = state
	g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}
	g.Status.ObservedGeneration = 1
	status := metav1.ConditionFalse
	if state == v1alpha1.StateOpened {
		status = metav1.ConditionTrue
	}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: status, Reason: v1alpha1.DefaultReason}}
	g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(noon.Add(-time.Hour)), State: state}
	for _, change := range changes {
		change(g)
	}
	return g
}

func closed(name string, changes ...change) *v1alpha1.Gate {
	return newGate(name, v1alpha1.StateClosed, changes...)
}

func opened(name string, changes ...change) *v1alpha1.Gate {
	return newGate(name, v1alpha1.StateOpened, changes...)
}

// because sets the reason of the condition Opened, and the period that decided.
func because(reason, by string) change {
	return func(g *v1alpha1.Gate) {
		g.Status.Conditions[0].Reason, g.Status.LastTransition.Period = reason, by
	}
}

func targets(refs ...v1alpha1.TargetReference) change {
	return func(g *v1alpha1.Gate) { g.Spec.Targets = refs }
}

// freeze adds a close period from an hour before noon to an hour after it.
func freeze(manual v1alpha1.Override) change {
	return func(g *v1alpha1.Gate) {
		from, until := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon.Add(time.Hour))
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}, Override: manual}}
		because(v1alpha1.ClosePeriodReason, "freeze")(g)
	}
}

// requestedClose closes a Gate by a request of alice that the controller has handled.
func requestedClose(g *v1alpha1.Gate) {
	at := metav1.NewMicroTime(noon.Add(-30 * time.Minute))
	g.Status.Requests = []v1alpha1.AcceptedRequest{{State: v1alpha1.RequestInForce, Action: v1alpha1.RequestClose, RequestedAt: at, AcceptedAt: at, RequestedBy: "alice", Message: "incident 77", Source: v1alpha1.SourceAnnotation}}
	because(v1alpha1.CloseRequestedReason, "")(g)
}

// watching makes a Gate depend on the Kustomization staging, which is not ready.
func watching(g *v1alpha1.Gate) {
	g.Spec.DependsOn = []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "staging"}}
	g.Status.Dependencies = []v1alpha1.DependencyStatus{{Kind: "Kustomization", Namespace: "shop", Name: "staging", Message: "Ready is False"}}
	because(v1alpha1.DependencyNotReadyReason, "")(g)
}

// in returns the input of a user who may read all Gates.
func in(gates ...*v1alpha1.Gate) explain.Cluster {
	return explain.Cluster{Gates: gates, Now: noon, Command: "kubectl gate"}
}

// commands returns the commands of the remedies, one per line.
func commands(e explain.Explanation) string {
	text := ""
	for _, r := range e.Remedies {
		text += fmt.Sprintln(r.Command)
	}
	return text
}

// fourEyes makes a Gate require one approval.
func fourEyes(g *v1alpha1.Gate) {
	g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}
}

// waiting adds an open request of alice that waits for approval.
func waiting(g *v1alpha1.Gate) {
	at := metav1.NewMicroTime(noon)
	g.Status.Requests = []v1alpha1.AcceptedRequest{{
		Action: v1alpha1.RequestOpen, RequestedAt: at, AcceptedAt: at, RequestedBy: "alice", State: v1alpha1.RequestWaiting, Stamped: true, Source: v1alpha1.SourceAnnotation,
	}}
}
