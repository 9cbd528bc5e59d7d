package target

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases/status,verbs=get;patch

var helmRelease = fields.New[helmv2.HelmRelease]()

var _ = register(helmReleases{suspend(helmv2.GroupVersion, helmv2.HelmReleaseKind, helmRelease, &helmRelease.Spec.Suspend, &helmRelease.Status.LastAttemptedRevision)})

var (
	helmChartPath       = fields.Path(helmRelease, &helmRelease.Status.HelmChart)
	historyPath         = fields.Path(helmRelease, &helmRelease.Status.History)
	chartVersionPath    = fields.Path(helmRelease, &helmRelease.Spec.Chart.Spec.Version)
	attemptedDigestPath = fields.Path(helmRelease, &helmRelease.Status.LastAttemptedRevisionDigest)
	versionPath         = fields.Path(helmChart, &helmChart.Spec.Version)

	release        = &helmv2.Snapshot{}
	releaseVersion = fields.Name(release, &release.ChartVersion)
)

// helmReleases is the adapter of HelmReleases.
type helmReleases struct{ suspendable }

// Source implements Applier. Without spec.chartRef, the source is the HelmChart that helm-controller creates. If the status does not
// contain the name of the HelmChart yet, the name is HelmChartName.
func (helmReleases) Source(obj *unstructured.Unstructured) (fluxmeta.NamespacedObjectKindReference, bool) {
	if ref, ok := sourceAt(obj, ChartRefPath); ok {
		return ref, true
	}
	if _, ok, _ := unstructured.NestedMap(obj.Object, ChartPath...); !ok {
		return fluxmeta.NamespacedObjectKindReference{}, false
	}
	namespace, name := cmp.Or(ReferenceAt(obj, ChartSourceRefPath).Namespace, obj.GetNamespace()), HelmChartName(obj.GetNamespace(), obj.GetName())
	if a, b, ok := strings.Cut(textAt(obj, helmChartPath), "/"); ok {
		namespace, name = a, b
	}
	return fluxmeta.NamespacedObjectKindReference{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.HelmChartKind, Namespace: namespace, Name: name}, true
}

// Applied implements Applier.
func (helmReleases) Applied(obj *unstructured.Unstructured) string {
	history, _, _ := unstructured.NestedSlice(obj.Object, historyPath...)
	for _, item := range history {
		release, _ := item.(map[string]any)
		if version, ok := release[releaseVersion].(string); ok {
			return version
		}
	}
	return textAt(obj, []string{"status", "lastAppliedRevision"})
}

// Pending implements Applier. While a HelmRelease is held, helm-controller does not update the version in its HelmChart, so the spec is
// compared with that version. If a digest instead of a version identifies the artifact, the digest is compared with the status.
func (h helmReleases) Pending(obj, source *unstructured.Unstructured) (string, bool) {
	if source.GetKind() == sourcev1.HelmChartKind {
		wanted := cmp.Or(textAt(obj, chartVersionPath), "*")
		if _, made, _ := unstructured.NestedMap(obj.Object, ChartPath...); made && wanted != cmp.Or(textAt(source, versionPath), "*") {
			return wanted, true
		}
	}
	revision, known := newer(h.Applied(obj), source)
	if digest := textAt(obj, attemptedDigestPath); known && digest != "" {
		if has := textAt(source, ArtifactRevisionPath); strings.Contains(has, ":") {
			revision = has
			if strings.HasSuffix(has, digest) {
				revision = ""
			}
		}
	}
	return revision, known
}
