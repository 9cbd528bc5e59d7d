package view

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Followers returns the GatedSources that follow or have pinned a source.
func Followers(ctx context.Context, targets TargetReader, source *unstructured.Unstructured) (keys []target.Key) {
	adapter, err := target.For("", v1alpha1.GatedSourceKind)
	if pinner, ok := adapter.(target.Pinner); err != nil || !ok || !pinner.CanPin(source.GroupVersionKind().GroupKind()) {
		return nil
	}
	found, err := targets.Select(ctx, adapter, source.GetNamespace(), &v1alpha1.TargetReference{Name: v1alpha1.AnyName})
	LogReadError(IgnoreUnread(err))
	for _, t := range found {
		if follows(t, source) {
			keys = append(keys, target.KeyOf(t))
		}
	}
	return keys
}

// follows returns whether a GatedSource follows or has pinned a source.
func follows(t *target.Object, source *unstructured.Unstructured) bool {
	g := SourceReferences(t)
	return g.Spec.SourceRef.Kind == source.GetKind() && slices.Contains([]string{g.Spec.SourceRef.Name, g.PinnedName()}, source.GetName())
}

// SourceReferences converts a GatedSource to its type, with only its name, its age and the references to its sources.
func SourceReferences(t *target.Object) *v1alpha1.GatedSource {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(t.Object, path...)
		return value
	}
	return &v1alpha1.GatedSource{
		ObjectMeta: metav1.ObjectMeta{Name: t.GetName(), CreationTimestamp: t.GetCreationTimestamp()},
		Spec: v1alpha1.GatedSourceSpec{
			SourceRef: v1alpha1.PinnableReference{Kind: text("spec", "sourceRef", "kind"), Name: text("spec", "sourceRef", "name")}, PinnedName: text("spec", "pinnedName"),
		},
	}
}
