package controllers

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/fields"
	"github.com/fluxcd/gating-controller/internal/target"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories;ocirepositories;helmcharts,verbs=create

var (
	repository  = &sourcev1.GitRepository{}
	suspendPath = fields.Path(repository, &repository.Spec.Suspend)
)

// gatedSourceWriter writes the status of GatedSources and the sources that they have pinned, each on the version that was read.
type gatedSourceWriter struct {
	client.Client
	targets *targetWriter
}

// status writes the status of a GatedSource, if it is another one.
func (w *gatedSourceWriter) status(ctx context.Context, l *looked) error {
	if equality.Semantic.DeepEqual(l.before.Status, l.after.Status) {
		return nil
	}
	written := l.after.DeepCopy()
	if err := w.Status().Patch(ctx, written, locked(l.before), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return err
	}
	l.after.ResourceVersion = written.ResourceVersion
	w.targets.versions.wrote(target.KeyOf(l.object), written.ResourceVersion)
	return nil
}

// pin writes a pinned source as a look at it says, or creates it.
func (w *gatedSourceWriter) pin(ctx context.Context, l *looked) error {
	obj := &unstructured.Unstructured{}
	if l.pinned != nil {
		obj = l.pinned.DeepCopy()
	} else {
		obj.SetAPIVersion(sourcev1.GroupVersion.String())
		if l.original != nil {
			obj.SetAPIVersion(l.original.GetAPIVersion())
		}
		obj.SetKind(l.after.Spec.SourceRef.Kind)
		obj.SetNamespace(l.after.Namespace)
		obj.SetName(l.after.PinnedName())
	}
	spec := l.step.Write
	if suspended, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, suspendPath...); ok {
		spec[suspendPath[1]] = suspended // that is for people and for Gates
	}
	obj.Object["spec"] = spec
	w.mark(obj, l)
	var err error
	if l.pinned == nil {
		err = w.Create(ctx, obj, client.FieldOwner(v1alpha1.FieldManager))
	} else {
		err = w.Patch(ctx, obj, locked(l.pinned), client.FieldOwner(v1alpha1.FieldManager))
	}
	if err != nil {
		return err
	}
	// The additions of the API server are noted, so that they are not drift.
	noted := *l
	noted.before, noted.after = l.after, l.after.DeepCopy()
	if written, _ := obj.Object["spec"].(map[string]any); l.step.Wrote(noted.after, written) {
		return w.status(ctx, &noted)
	}
	return nil
}

// mark says whose a pinned source is. With the label of source-controller's shard, the one fetches it that fetches the original.
func (w *gatedSourceWriter) mark(obj *unstructured.Unstructured, l *looked) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.PinnedByAnnotation] = l.after.Name
	obj.SetAnnotations(annotations)
	if l.original != nil && l.original.GetLabels()[shardLabel] != "" {
		set := obj.GetLabels()
		if set == nil {
			set = map[string]string{}
		}
		set[shardLabel] = l.original.GetLabels()[shardLabel]
		obj.SetLabels(set)
	}
	owners := slices.DeleteFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == l.after.UID })
	if l.after.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete {
		owners = append(owners, metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GatedSourceKind, Name: l.after.Name, UID: l.after.UID,
		})
	}
	obj.SetOwnerReferences(owners)
}

// shardLabel is how Flux assigns an object to a shard of a controller.
const shardLabel = "sharding.fluxcd.io/key"
