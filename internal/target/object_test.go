package target_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	manager = "gating-controller"
	heldBy  = "gating.toolkit.fluxcd.io/heldBy"
)

var identity = target.Identity{Manager: manager, HeldBy: heldBy}

// owner returns an entry of managed fields.
func owner(name string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Manager: name, Operation: operation, Subresource: subresource, APIVersion: "kustomize.toolkit.fluxcd.io/v1", FieldsType: "FieldsV1"}
	if fields != "" {
		entry.FieldsV1 = metav1.NewFieldsV1(fields)
	}
	return entry
}

const (
	apply  = metav1.ManagedFieldsOperationApply
	update = metav1.ManagedFieldsOperationUpdate

	leverField   = `{"f:spec":{"f:suspend":{}}}`
	heldByField  = `{"f:metadata":{"f:annotations":{"f:gating.toolkit.fluxcd.io/heldBy":{}}}}`
	suspendField = `{"f:metadata":{"f:annotations":{"f:gating.toolkit.fluxcd.io/heldBy":{}}},"f:spec":{"f:suspend":{}}}`
	otherFields  = `{"f:metadata":{"f:annotations":{"f:x":{}}},"f:spec":{"f:interval":{},"f:path":{}}}`
)

func kustomization(suspend any, owners ...metav1.ManagedFieldsEntry) *target.Object {
	spec := map[string]any{"interval": "1h", "path": "./"}
	if suspend != nil {
		spec["suspend"] = suspend
	}
	obj := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "apps", "namespace": "flux-system"},
		"spec":     spec,
	}}}
	obj.SetManagedFields(owners)
	return obj
}

// named returns a suspended Kustomization with the name of a Gate in the annotation heldBy.
func named(owners ...metav1.ManagedFieldsEntry) *target.Object {
	obj := kustomization(true, owners...)
	obj.SetAnnotations(map[string]string{heldBy: "ns/a"})
	return obj
}

func TestObserveDistinguishesOurHoldFromOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		obj  *target.Object
		want target.State
	}{
		"no suspend":    {kustomization(nil), target.Free},
		"suspend false": {kustomization(false), target.Free},
		"suspend false that we own, after Git took it over": {kustomization(false, owner(manager, apply, "", suspendField)), target.Free},
		"suspend of a wrong type":                           {kustomization("true"), target.Free},
		"suspended by flux":                                 {kustomization(true, owner("flux", update, "", suspendField)), target.SuspendedByOthers},
		"suspended by Git":                                  {kustomization(true, owner("kustomize-controller", apply, "", suspendField)), target.SuspendedByOthers},
		"suspended, the owner is unknown":                   {kustomization(true), target.SuspendedByOthers},
		"held by us":                                        {kustomization(true, owner(manager, apply, "", suspendField)), target.Held},
		"held by us and by Git": {
			kustomization(true, owner("kustomize-controller", apply, "", suspendField), owner(manager, apply, "", suspendField), owner("flux", update, "", otherFields)), target.Held},
		"suspended by flux, while we own other fields": {
			kustomization(true, owner(manager, apply, "", otherFields), owner("flux", update, "", suspendField)), target.SuspendedByOthers},
		"suspended by flux, while we own the status": {
			kustomization(true, owner(manager, update, "status", `{"f:status":{"f:conditions":{}}}`), owner("flux", update, "", suspendField)), target.SuspendedByOthers},
		"our name, but an update":                          {kustomization(true, owner(manager, update, "", suspendField)), target.SuspendedByOthers},
		"our name, but of status":                          {kustomization(true, owner(manager, apply, "status", suspendField)), target.SuspendedByOthers},
		"our name in another":                              {kustomization(true, owner(manager+"-2", apply, "", suspendField)), target.SuspendedByOthers},
		"our entry has no fields":                          {kustomization(true, owner(manager, apply, "", "")), target.SuspendedByOthers},
		"held by the lock":                                 {named(owner("kustomize-controller", apply, "", otherFields)), target.Locked},
		"held by the lock, then suspended by Git":          {named(owner("kustomize-controller", apply, "", leverField)), target.Locked},
		"held by us, the name put back by the lock":        {named(owner(manager, apply, "", leverField)), target.Locked},
		"held by us, resumed, put back by the lock":        {named(owner(manager, apply, "", heldByField)), target.Overridden},
		"held by us, taken over by flux":                   {named(owner(manager, apply, "", heldByField), owner("flux", update, "", leverField)), target.SuspendedByOthers},
		"suspended by Git, which copied the name":          {named(owner("kustomize-controller", apply, "", suspendField)), target.SuspendedByOthers},
		"suspended, the owner is unknown, the name copied": {named(owner("kubectl", update, "", heldByField)), target.SuspendedByOthers},
		"our entry has suspend elsewhere": {
			kustomization(true, owner(manager, apply, "", `{"f:suspend":{},"f:spec":{"f:interval":{}}}`)), target.SuspendedByOthers},
	} {
		t.Run(name, func(t *testing.T) {
			target.Trim(&tc.obj.Unstructured, identity)
			adapter := target.Of(&tc.obj.Unstructured)
			if got := adapter.Observe(tc.obj, identity); got != tc.want {
				t.Errorf("got state %d, want %d", got, tc.want)
			}
			target.Trim(&tc.obj.Unstructured, identity)
			if got := adapter.Observe(tc.obj, identity); got != tc.want {
				t.Errorf("trimmed twice, the state is %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTrimKeepsMetadataHoldFieldAndConditions(t *testing.T) {
	obj := kustomization(true, owner("flux", update, "", otherFields), owner(manager, apply, "", suspendField))
	obj.SetUID("uid")
	obj.SetResourceVersion("7")
	obj.SetGeneration(3)
	obj.SetLabels(map[string]string{"tier": "critical"})
	obj.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "gating.toolkit.fluxcd.io/heldBy": "ns/a"})
	obj.SetFinalizers([]string{"finalizers.fluxcd.io"})
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
	obj.Object["data"] = "much"
	obj.Object["status"] = map[string]any{
		"inventory":  map[string]any{"entries": []any{}},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-11-23T12:00:00Z"}},
	}
	target.Trim(&obj.Unstructured, identity)

	for name, ok := range map[string]bool{
		"uid":                obj.GetUID() == "uid",
		"resource version":   obj.GetResourceVersion() == "7",
		"generation":         obj.GetGeneration() == 3,
		"labels":             obj.GetLabels()["tier"] == "critical",
		"finalizers":         len(obj.GetFinalizers()) == 1,
		"deletion timestamp": obj.GetDeletionTimestamp() != nil,
		"heldBy":             obj.GetAnnotations()["gating.toolkit.fluxcd.io/heldBy"] == "ns/a",
		"last-applied gone":  len(obj.GetAnnotations()) == 1,
		"data gone":          obj.Object["data"] == nil,
		"suspend":            obj.Object["spec"].(map[string]any)["suspend"] == true,
		"rest of spec gone":  obj.Object["spec"].(map[string]any)["path"] == nil,
		"conditions":         len(obj.GetConditions()) == 1 && obj.GetConditions()[0].Message == "m",
		"inventory gone":     len(obj.Object["status"].(map[string]any)) == 1,
		"our managed field":  len(obj.GetManagedFields()) == 1 && obj.GetManagedFields()[0].Manager == manager,
		"kind":               obj.GetKind() == "Kustomization" && obj.GetAPIVersion() == "kustomize.toolkit.fluxcd.io/v1",
	} {
		if !ok {
			t.Errorf("%s: %v", name, obj.Object)
		}
	}
}

func TestTrimLeavesUnsupportedKindsAndBareObjectsAlone(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "b"}}}
	target.Trim(secret, identity)
	if secret.Object["data"] == nil {
		t.Error("a Secret is trimmed")
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "a"}}}
	target.Trim(bare, identity)
	if _, ok := bare.Object["spec"]; ok || bare.GetName() != "a" {
		t.Errorf("got %v", bare.Object)
	}
}

func TestTargetConditions(t *testing.T) {
	obj := kustomization(nil)
	if got := obj.GetConditions(); len(got) != 0 {
		t.Errorf("none became %v", got)
	}
	want := metav1.Condition{Type: "Approved", Status: "False", Reason: "GateClosed", Message: "m", ObservedGeneration: 4, LastTransitionTime: metav1.Unix(1795435200, 0)}
	obj.SetConditions([]metav1.Condition{want})
	got := obj.GetConditions()
	if len(got) != 1 || got[0].Type != want.Type || got[0].Message != want.Message || got[0].ObservedGeneration != 4 || !got[0].LastTransitionTime.Equal(&want.LastTransitionTime) {
		t.Errorf("got %+v", got)
	}
	obj.Object["status"] = "broken"
	obj.SetConditions([]metav1.Condition{want})
	if len(obj.GetConditions()) != 1 {
		t.Errorf("a broken status stays %v", obj.Object["status"])
	}
	copied := obj.DeepCopyObject()
	if _, ok := copied.(*target.Object); !ok {
		t.Errorf("a copy is a %T", copied)
	}
	obj.SetConditions(nil)
	if len(copied.(*target.Object).GetConditions()) != 1 {
		t.Error("a copy changes with its original")
	}
}

func TestLeverIsSuspend(t *testing.T) {
	obj := kustomization(nil)
	plan := target.Of(&obj.Unstructured).Plan(obj, target.Free, target.Terms{}, time.Time{})
	if want := (target.Plan{Lever: map[string]any{"suspend": true}}); !reflect.DeepEqual(plan, want) {
		t.Errorf("got %v", plan)
	}
}

// GetConditions returns the same as the converter that other clients use.
func TestConditionsMatchConverter(t *testing.T) {
	for name, fields := range map[string]map[string]any{
		"all fields": {
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "done", "lastTransitionTime": "2026-11-23T12:00:00Z", "observedGeneration": int64(3),
		},
		"none":                   {},
		"another zone":           {"type": "Ready", "lastTransitionTime": "2026-11-23T12:00:00+01:00"},
		"no time":                {"type": "Ready", "lastTransitionTime": nil},
		"fields of others":       {"type": "Ready", "severity": "Info", "since": map[string]any{"a": "b"}},
		"a type that is none":    {"type": int64(1)},
		"a message of a list":    {"type": "Ready", "message": []any{"a"}},
		"a time that is none":    {"type": "Ready", "lastTransitionTime": "yesterday"},
		"a generation in quotes": {"type": "Ready", "observedGeneration": "3"},
	} {
		t.Run(name, func(t *testing.T) {
			var want metav1.Condition
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &want)
			got := (&target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{
				"status": map[string]any{"conditions": []any{fields}},
			}}}).GetConditions()
			if err != nil && len(got) == 0 {
				return
			}
			if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
				t.Errorf("got %v, want %v, %v", got, want, err)
			}
		})
	}
}
