package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wI2L/jsondiff"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	fluxdiff "github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/fluxcd/pkg/ssa/utils"
)

// The changes of an object.
const (
	Created    = "created"
	Configured = "configured"
	Deleted    = "deleted"
	// Unknown means that the change is unknown. Cause is the reason.
	Unknown = "unknown"
)

// Change is the change of one object.
type Change struct {
	// Object identifies the object as Flux does, by kind, namespace if there is one, and name, separated by slashes.
	Object string `json:"object"`
	// Action is created, configured, deleted or unknown.
	Action string `json:"action"`
	// Fields are the fields that would change, if the object is configured. Values of Secrets are masked.
	Fields []Field `json:"fields,omitempty"`
	// Cause is the reason why the change is unknown.
	Cause string `json:"cause,omitempty"`
}

// Field is a field that would change.
type Field struct {
	// Path is a JSON pointer (RFC 6901).
	Path string `json:"path"`
	// Before and After are the values of the field, missing if there is none.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
}

// manager is the field manager of kustomize-controller.
const manager = "kustomize-controller"

var group = kustomizev1.GroupVersion.Group

// Diff returns the changes and deletions that a Kustomization would make if it applied the given objects, sorted by name.
// Unchanged objects are omitted.
func Diff(ctx context.Context, c client.Client, ks *unstructured.Unstructured, objects []*unstructured.Unstructured) ([]Change, error) {
	flux := ssa.NewResourceManager(c, nil, ssa.Owner{Field: manager, Group: group})
	flux.SetOwnerLabels(objects, ks.GetName(), ks.GetNamespace())
	typed, err := kustomizationOf(ks)
	if err != nil {
		return nil, err
	}
	var all []Change
	opts := optionsOf(typed)
	for _, obj := range objects {
		if change := changeOf(ctx, flux, obj, opts); change.Action != "" {
			all = append(all, change)
		}
	}
	pruned, err := pruned(ctx, c, typed, objects)
	if err != nil {
		return nil, err
	}
	all = append(all, pruned...)
	slices.SortStableFunc(all, func(a, b Change) int { return strings.Compare(a.Object, b.Object) })
	return all, nil
}

// optionsOf returns the options that kustomize-controller applies objects with.
func optionsOf(ks *kustomizev1.Kustomization) ssa.DiffOptions {
	opts := ssa.DiffOptions{
		Exclusions:           map[string]string{group + "/reconcile": kustomizev1.DisabledValue, group + "/ssa": kustomizev1.IgnoreValue},
		IfNotPresentSelector: map[string]string{group + "/ssa": kustomizev1.IfNotPresentValue},
		ForceSelector:        map[string]string{group + "/force": kustomizev1.EnabledValue},
		Force:                ks.Spec.Force,
	}
	for _, rule := range ks.Spec.Ignore {
		ignore := fluxdiff.IgnoreRule{Paths: rule.Paths}
		if t := rule.Target; t != nil {
			ignore.Selector = &fluxdiff.Selector{
				Group: t.Group, Version: t.Version, Kind: t.Kind, Name: t.Name, Namespace: t.Namespace,
				AnnotationSelector: t.AnnotationSelector, LabelSelector: t.LabelSelector,
			}
		}
		opts.DriftIgnoreRules = append(opts.DriftIgnoreRules, ignore)
	}
	return opts
}

// changeOf returns the change of an object, without an action if nothing changes.
func changeOf(ctx context.Context, flux *ssa.ResourceManager, obj *unstructured.Unstructured, opts ssa.DiffOptions) Change {
	change := Change{Object: utils.FmtUnstructured(obj), Action: Unknown}
	if _, encrypted := obj.Object["sops"]; encrypted {
		change.Cause = "it is encrypted"
		return change
	}
	entry, before, after, err := flux.Diff(ctx, obj, opts)
	if err != nil {
		change.Cause = err.Error()
		return change
	}
	switch entry.Action {
	case ssa.CreatedAction:
		change.Action = Created
	case ssa.ConfiguredAction:
		change.Action = Configured
		if change.Fields, err = fieldsOf(before, after); err != nil {
			change.Cause = err.Error()
		}
	default:
		change.Action = ""
	}
	return change
}

// fieldsOf returns the fields in which two versions of an object differ, except fields that only the API server writes.
func fieldsOf(before, after *unstructured.Unstructured) ([]Field, error) {
	patch, err := jsondiff.Compare(written(before), written(after))
	if err != nil {
		return nil, err
	}
	fields := make([]Field, len(patch))
	for i, op := range patch {
		fields[i] = Field{op.Path, op.OldValue, op.Value}
	}
	return fields, nil
}

func written(obj *unstructured.Unstructured) map[string]any {
	fields := obj.DeepCopy().Object
	delete(fields, "status")
	metadata, _ := fields["metadata"].(map[string]any)
	fields["metadata"] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
	return fields
}

// pruned returns the changes of the objects that a Kustomization has applied before and would no longer apply.
func pruned(ctx context.Context, c client.Client, ks *kustomizev1.Kustomization, objects []*unstructured.Unstructured) ([]Change, error) {
	if !ks.Spec.Prune || ks.Status.Inventory == nil {
		return nil, nil
	}
	stays := object.UnstructuredSetToObjMetadataSet(objects)
	var all []Change
	for _, entry := range ks.Status.Inventory.Entries {
		of, err := object.ParseObjMetadata(entry.ID)
		if err != nil {
			return nil, fmt.Errorf("status.inventory: %w", err)
		}
		if stays.Contains(of) {
			continue
		}
		if change := prunedOne(ctx, c, of, of.GroupKind.WithVersion(entry.Version)); change.Action != "" {
			all = append(all, change)
		}
	}
	return all, nil
}

// prunedOne returns the change of an object that is no longer applied, without an action if nothing changes.
func prunedOne(ctx context.Context, c client.Client, of object.ObjMetadata, gvk schema.GroupVersionKind) Change {
	change := Change{Object: utils.FmtObjMetadata(of), Action: Deleted}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	switch err := c.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, obj); {
	case apierrors.IsNotFound(err):
		return Change{}
	case err != nil:
		change.Action, change.Cause = Unknown, "it is no longer applied, but cannot be read: "+err.Error()
	case keeps(obj):
		return Change{}
	}
	return change
}

// keeps returns whether an object is excluded from pruning.
func keeps(obj *unstructured.Unstructured) bool {
	for _, key := range []string{group + "/prune", group + "/reconcile"} {
		if strings.EqualFold(cmp.Or(obj.GetAnnotations()[key], obj.GetLabels()[key]), kustomizev1.DisabledValue) {
			return true
		}
	}
	return false
}
