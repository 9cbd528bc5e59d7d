package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// The paths of the references to the source of a Kustomization, to that of a HelmRelease, and to that of the HelmChart which
// helm-controller makes of spec.chart.
var (
	SourceRefPath      = fields.Path(kustomization, &kustomization.Spec.SourceRef)
	ChartRefPath       = fields.Path(helmRelease, &helmRelease.Spec.ChartRef)
	ChartPath          = fields.Path(helmRelease, &helmRelease.Spec.Chart)
	ChartSourceRefPath = fields.Path(helmRelease, &helmRelease.Spec.Chart.Spec.SourceRef)
)

// ArtifactRevisionPath is the path of the revision of the artifact of a source.
var ArtifactRevisionPath = fields.Path(gitRepository, &gitRepository.Status.Artifact.Revision)

// HelmChartName returns the name of the HelmChart that helm-controller makes for a HelmRelease.
func HelmChartName(namespace, name string) string {
	return helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}.GetHelmChartName()
}

// ReferenceAt reads a reference to an object. It is empty if the reference is missing or malformed.
func ReferenceAt(obj *unstructured.Unstructured, path []string) (ref fluxmeta.NamespacedObjectKindReference) {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	reference, _ := value.(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(reference, &ref) != nil {
		return fluxmeta.NamespacedObjectKindReference{}
	}
	return ref
}
