package target

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// Paths of source references: in a Kustomization, in a HelmRelease, and in the spec.chart that helm-controller creates a HelmChart from.
var (
	SourceRefPath      = fields.Path(kustomization, &kustomization.Spec.SourceRef)
	ChartRefPath       = fields.Path(helmRelease, &helmRelease.Spec.ChartRef)
	ChartPath          = fields.Path(helmRelease, &helmRelease.Spec.Chart)
	ChartSourceRefPath = fields.Path(helmRelease, &helmRelease.Spec.Chart.Spec.SourceRef)
)

// ArtifactRevisionPath is the path of the revision of the artifact of a source.
var ArtifactRevisionPath = fields.Path(gitRepository, &gitRepository.Status.Artifact.Revision)

// HelmChartName returns the name of the HelmChart that helm-controller creates for a HelmRelease.
func HelmChartName(namespace, name string) string {
	return helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}.GetHelmChartName()
}

// ReferenceAt returns the reference at a path in an object. The result is empty if the reference is missing or malformed.
func ReferenceAt(obj *unstructured.Unstructured, path []string) (ref fluxmeta.NamespacedObjectKindReference) {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	reference, _ := value.(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(reference, &ref) != nil {
		return fluxmeta.NamespacedObjectKindReference{}
	}
	return ref
}

// follower implements Applier for kinds whose spec.sourceRef names the source.
type follower struct{}

// Source implements Applier.
func (follower) Source(obj *unstructured.Unstructured) (fluxmeta.NamespacedObjectKindReference, bool) {
	return sourceAt(obj, SourceRefPath)
}

// Applied implements Applier.
func (follower) Applied(obj *unstructured.Unstructured) string {
	return Revision(&Object{Unstructured: *obj})
}

// Pending implements Applier.
func (f follower) Pending(obj, source *unstructured.Unstructured) (string, bool) {
	return newer(f.Applied(obj), source)
}

// sourceAt returns the source reference at a path, with defaults. It returns false if the reference is missing or malformed.
func sourceAt(obj *unstructured.Unstructured, path []string) (fluxmeta.NamespacedObjectKindReference, bool) {
	ref := ReferenceAt(obj, path)
	if ref.Kind == "" || ref.Name == "" {
		return fluxmeta.NamespacedObjectKindReference{}, false
	}
	ref.APIVersion, ref.Namespace = cmp.Or(ref.APIVersion, sourcev1.GroupVersion.String()), cmp.Or(ref.Namespace, obj.GetNamespace())
	return ref, true
}

// newer returns the revision of a source, empty if it is already applied. known is false if the source has no revision.
func newer(applied string, source *unstructured.Unstructured) (revision string, known bool) {
	if revision = textAt(source, ArtifactRevisionPath); revision == applied {
		return "", revision != ""
	}
	return revision, revision != ""
}

func textAt(obj *unstructured.Unstructured, path []string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}
