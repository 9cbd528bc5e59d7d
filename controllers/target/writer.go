package target

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// writer writes targets. Each write is conditional on the version that the decision is based on.
type writer struct {
	client.Client
	// Live reads from the API server.
	Live     client.Reader
	Versions *ownwrites.Versions[target.Key]
}

// holdConfig contains the parts of a target's apply configuration that hold the target or record a pass.
type holdConfig struct {
	// names are the names of the Gates that hold the target.
	names []string
	// lever contains the spec fields that hold the target, nil to release it.
	lever map[string]any
	// passAnnotations are the annotations that record a pass.
	passAnnotations map[string]string
}

// apply writes the apply configuration of a target with forced ownership, because a hold overrides the values of other clients. It
// returns the target with its new version.
func (w *writer) apply(ctx context.Context, obj *target.Object, h holdConfig) (*target.Object, error) {
	config := newApplyConfig(obj)
	annotations := map[string]string{}
	maps.Copy(annotations, h.passAnnotations)
	if len(h.names) > 0 {
		annotations[v1alpha1.HeldByAnnotation] = target.FormatHeldBy(h.names)
	}
	if h.lever != nil {
		all := maps.Clone(annotations)
		maps.Copy(all, target.SuspendedBy(obj, verdict.Us, h.names))
		if verdict.Fits(obj, all) {
			annotations = all
		}
	}
	if len(annotations) > 0 {
		config.SetAnnotations(annotations)
	}
	if h.lever != nil {
		config.Object["spec"] = h.lever
	}
	raw, err := json.Marshal(config.Object)
	if err != nil {
		return nil, err
	}
	defer w.Versions.StartWrite(target.KeyOf(obj))()
	latest := newMetadata(obj)
	if err := w.Patch(ctx, latest, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return nil, err
	}
	return w.wrote(obj, latest), nil
}

// wrote records the version of a target after a write, and returns the target with that version.
func (w *writer) wrote(obj *target.Object, latest *metav1.PartialObjectMetadata) *target.Object {
	w.Versions.Wrote(target.KeyOf(obj), latest.ResourceVersion)
	written := &target.Object{Unstructured: *obj.DeepCopy()}
	written.SetResourceVersion(latest.ResourceVersion)
	written.SetGeneration(latest.Generation)
	return written
}

// conditions replaces our conditions on a target. It returns whether they changed. Conditions of a target.Reporter are applied.
// Conditions of Flux objects are an atomic list, which is patched, conditional on the version that was read.
func (w *writer) conditions(ctx context.Context, obj *target.Object, ours []metav1.Condition, now metav1.Time) (bool, error) {
	before := map[string]metav1.Condition{}
	var others []metav1.Condition
	for _, condition := range obj.GetConditions() {
		if slices.Contains(verdict.ConditionTypes, condition.Type) {
			before[condition.Type] = condition
		} else {
			others = append(others, condition)
		}
	}
	_, byApply := target.As[target.Reporter](&obj.Unstructured)
	changed := len(ours) != len(before)
	after := map[string]metav1.Condition{}
	for _, condition := range ours {
		was, ok := before[condition.Type]
		least := condition.LastTransitionTime
		early := was.LastTransitionTime.Before(&least)
		condition.LastTransitionTime = was.LastTransitionTime
		if !ok || early || was.Status != condition.Status {
			condition.LastTransitionTime = now
		}
		if condition.LastTransitionTime.Before(&least) { // another clock is ahead
			condition.LastTransitionTime = least
		}
		if !byApply {
			condition.ObservedGeneration = obj.GetGeneration()
		}
		after[condition.Type] = condition
		changed = changed || !ok || early || was.Status != condition.Status || was.Reason != condition.Reason || was.Message != condition.Message
	}
	if !changed {
		return false, nil
	}
	list := slices.SortedFunc(maps.Values(after), func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	if byApply {
		return true, w.applyConditions(ctx, obj, list)
	}
	return true, w.patchConditions(ctx, obj, append(others, list...))
}

func (w *writer) applyConditions(ctx context.Context, obj *target.Object, list []metav1.Condition) error {
	config := newApplyConfig(obj)
	config.SetConditions(list)
	err := w.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	if err == nil {
		w.Versions.Wrote(target.KeyOf(obj), config.GetResourceVersion())
	}
	return client.IgnoreNotFound(err)
}

// patchConditions writes all conditions of a target, conditional on the version that was read.
func (w *writer) patchConditions(ctx context.Context, obj *target.Object, list []metav1.Condition) error {
	latest := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{}}}
	latest.SetConditions(list)
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()},
		"status":   latest.Object["status"],
	})
	if err != nil {
		return err
	}
	metadata := newMetadata(obj)
	err = w.Status().Patch(ctx, metadata, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(v1alpha1.FieldManager))
	if err == nil {
		w.Versions.Wrote(target.KeyOf(obj), metadata.ResourceVersion)
	}
	return client.IgnoreNotFound(err)
}

// newMetadata returns an object for the response to a patch of a target. Only the metadata is requested, because decoding thousands of
// whole objects is expensive.
func newMetadata(obj *target.Object) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	metadata.SetGroupVersionKind(obj.GroupVersionKind())
	return metadata
}

// newApplyConfig returns an apply configuration for a target. The write will be conditional on the version that was read.
func newApplyConfig(obj *target.Object) *target.Object {
	config := &target.Object{}
	config.SetGroupVersionKind(obj.GroupVersionKind())
	config.SetName(obj.GetName())
	config.SetNamespace(obj.GetNamespace())
	// Without the UID, the API server would create a deleted object again, or reject it as incomplete.
	config.SetUID(obj.GetUID())
	config.SetResourceVersion(obj.GetResourceVersion())
	return config
}
