package gatedsource

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/fields"
	"github.com/fluxcd/gating-controller/internal/target"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories;ocirepositories;helmcharts,verbs=create

var (
	repository  = &sourcev1.GitRepository{}
	suspendPath = fields.Path(repository, &repository.Spec.Suspend)
)

// writer writes the status of GatedSources and their pinned sources. Each write is conditional on the version that was read.
type writer struct {
	client.Client
	// Live reads from the API server.
	Live     client.Reader
	Versions *ownwrites.Versions[target.Key]
}

// status writes the status of a GatedSource if it has changed.
func (w *writer) status(ctx context.Context, s *promotionState) error {
	writer := ownwrites.Writer[*v1alpha1.GatedSource]{Client: w.Client, Base: s.before}
	if err := writer.WriteStatus(ctx, s.after); err != nil {
		return err
	}
	if version := writer.Base.ResourceVersion; version != s.before.ResourceVersion {
		s.after.ResourceVersion = version
		w.Versions.Wrote(target.KeyOf(s.object), version)
	}
	return nil
}

// pin creates or updates the pinned source.
func (w *writer) pin(ctx context.Context, s *promotionState) error {
	obj := &unstructured.Unstructured{}
	if s.pinned != nil {
		obj = s.pinned.DeepCopy()
	} else {
		obj.SetAPIVersion(sourcev1.GroupVersion.String())
		if s.original != nil {
			obj.SetAPIVersion(s.original.GetAPIVersion())
		}
		obj.SetKind(s.after.Spec.SourceRef.Kind)
		obj.SetNamespace(s.after.Namespace)
		obj.SetName(s.after.PinnedName())
	}
	spec := s.step.Write
	if suspended, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, suspendPath...); ok {
		spec[suspendPath[1]] = suspended // users and Gates set this field
	}
	obj.Object["spec"] = spec
	w.mark(obj, s)
	var err error
	if s.pinned == nil {
		err = w.Create(ctx, obj, client.FieldOwner(v1alpha1.FieldManager))
	} else {
		err = w.Patch(ctx, obj, ownwrites.Locked(s.pinned), client.FieldOwner(v1alpha1.FieldManager))
	}
	if err != nil {
		return err
	}
	// The status records the fields with the defaults set by the API server, so that these do not count as drift.
	recorded := *s
	recorded.before, recorded.after = s.after, s.after.DeepCopy()
	if written, _ := obj.Object["spec"].(map[string]any); s.step.Wrote(recorded.after, written) {
		return w.status(ctx, &recorded)
	}
	return nil
}

// mark records the GatedSource on its pinned source. It copies the shard label, so that the source-controller of the original also
// fetches the pinned source.
func (w *writer) mark(obj *unstructured.Unstructured, s *promotionState) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.PinnedByAnnotation] = s.after.Name
	obj.SetAnnotations(annotations)
	if s.original != nil && s.original.GetLabels()[ShardLabel] != "" {
		set := obj.GetLabels()
		if set == nil {
			set = map[string]string{}
		}
		set[ShardLabel] = s.original.GetLabels()[ShardLabel]
		obj.SetLabels(set)
	}
	owners := slices.DeleteFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == s.after.UID })
	if s.after.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete {
		owners = append(owners, metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GatedSourceKind, Name: s.after.Name, UID: s.after.UID,
		})
	}
	obj.SetOwnerReferences(owners)
}

// ShardLabel is the label that assigns objects to the shards of a Flux controller.
const ShardLabel = "sharding.fluxcd.io/key"
