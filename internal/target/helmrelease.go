package target

import (
	"cmp"
	"slices"
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

	lastAppliedPath = []string{"status", "lastAppliedRevision"} // of API versions before v2

	release        = &helmv2.Snapshot{}
	releaseStatus  = fields.Name(release, &release.Status)
	releaseVersion = fields.Name(release, &release.ChartVersion)
)

// helmReleases is the adapter of HelmReleases.
type helmReleases struct{ suspendable }

func (h helmReleases) reads() [][]string {
	return append(h.suspendable.reads(), historyPath, lastAppliedPath)
}

// trim implements trimmer. Of the history, it keeps the statuses.
func (helmReleases) trim(obj *unstructured.Unstructured) {
	history, ok, err := unstructured.NestedFieldNoCopy(obj.Object, historyPath...)
	if list, isList := history.([]any); ok && err == nil && isList {
		for i := range list {
			if entry, isMap := list[i].(map[string]any); isMap {
				list[i] = map[string]any{releaseStatus: entry[releaseStatus]}
			}
		}
	}
}

// HasSucceeded implements Installer. A release that was deployed stays in the history as superseded. A failed first installation, which
// Flux may uninstall before it retries, does not count.
func (helmReleases) HasSucceeded(obj *Object) bool {
	history, ok, err := unstructured.NestedFieldNoCopy(obj.Object, historyPath...)
	list, isList := history.([]any)
	if err != nil || ok && history != nil && !isList || isSet(obj, lastAppliedPath) {
		return true
	}
	return slices.ContainsFunc(list, func(item any) bool {
		entry, _ := item.(map[string]any)
		status, _ := entry[releaseStatus].(string)
		return !slices.Contains(unsuccessful, status)
	})
}

// unsuccessful lists the statuses of releases in Helm that were never deployed.
var unsuccessful = []string{"failed", "uninstalled", "uninstalling", "pending-install"}

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
	return textAt(obj, lastAppliedPath)
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
