package explain

import (
	"cmp"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

var sourceVersion = sourcev1.GroupVersion.String()

// SourceOf names the object whose revision a Kustomization or a HelmRelease applies, or a GatedSource
// follows. It returns false for other objects. Only the group of its apiVersion counts.
func SourceOf(obj *unstructured.Unstructured) (Ref, bool) {
	switch obj.GetKind() {
	case kustomizev1.KustomizationKind, v1alpha1.GatedSourceKind: // both have the same path
		return reference(obj, target.SourceRefPath)
	case helmv2.HelmReleaseKind:
		if ref, ok := reference(obj, target.ChartRefPath); ok {
			return ref, true
		}
		return chartOf(obj)
	}
	return Ref{}, false
}

// reference reads a reference to a source.
func reference(obj *unstructured.Unstructured, path []string) (Ref, bool) {
	ref := target.ReferenceAt(obj, path)
	if ref.Kind == "" || ref.Name == "" {
		return Ref{}, false
	}
	return Ref{cmp.Or(ref.APIVersion, sourceVersion), ref.Kind, cmp.Or(ref.Namespace, obj.GetNamespace()), ref.Name}, true
}

// chartOf returns the HelmChart that helm-controller makes for a HelmRelease. Its status names it. Before that,
// helm-controller would give it the name of HelmChartName.
func chartOf(obj *unstructured.Unstructured) (Ref, bool) {
	if _, ok, _ := unstructured.NestedMap(obj.Object, target.ChartPath...); !ok {
		return Ref{}, false
	}
	namespace, name := cmp.Or(target.ReferenceAt(obj, target.ChartSourceRefPath).Namespace, obj.GetNamespace()), target.HelmChartName(obj.GetNamespace(), obj.GetName())
	if a, b, ok := strings.Cut(text(obj, helmChartPath...), "/"); ok {
		namespace, name = a, b
	}
	return Ref{sourceVersion, sourcev1.HelmChartKind, namespace, name}, true
}

var digests = regexp.MustCompile(`\b((?:sha1|sha256|sha384|sha512|blake3):[0-9a-f]{8})[0-9a-f]+\b`)

// ShortRevision returns a revision as flux get shows it: with eight digits of a digest.
func ShortRevision(revision string) string { return digests.ReplaceAllString(revision, "$1") }

func text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}
