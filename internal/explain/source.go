package explain

import (
	"cmp"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const sourceVersion = "source.toolkit.fluxcd.io/v1"

// SourceOf names the object whose revision a Kustomization or a HelmRelease applies, or a GatedSource
// follows. It returns false for other objects. Only the group of its apiVersion counts.
func SourceOf(obj *unstructured.Unstructured) (Ref, bool) {
	switch obj.GetKind() {
	case "Kustomization", "GatedSource":
		return reference(obj, "spec", "sourceRef")
	case "HelmRelease":
		if ref, ok := reference(obj, "spec", "chartRef"); ok {
			return ref, true
		}
		return chartOf(obj)
	}
	return Ref{}, false
}

// reference reads a reference to a source.
func reference(obj *unstructured.Unstructured, path ...string) (Ref, bool) {
	kind, name := text(obj, append(path, "kind")...), text(obj, append(path, "name")...)
	if kind == "" || name == "" {
		return Ref{}, false
	}
	return Ref{cmp.Or(text(obj, append(path, "apiVersion")...), sourceVersion), kind, cmp.Or(text(obj, append(path, "namespace")...), obj.GetNamespace()), name}, true
}

// chartOf returns the HelmChart that helm-controller makes for a HelmRelease. Its status names it. Before that, the name is
// that of func (HelmRelease) GetHelmChartName.
func chartOf(obj *unstructured.Unstructured) (Ref, bool) {
	if _, ok, _ := unstructured.NestedMap(obj.Object, "spec", "chart"); !ok {
		return Ref{}, false
	}
	chart := Ref{sourceVersion, "HelmChart", cmp.Or(text(obj, "spec", "chart", "spec", "sourceRef", "namespace"), obj.GetNamespace()), obj.GetNamespace() + "-" + obj.GetName()}
	if namespace, name, ok := strings.Cut(text(obj, "status", "helmChart"), "/"); ok {
		chart.Namespace, chart.Name = namespace, name
	}
	return chart, true
}

var digests = regexp.MustCompile(`\b((?:sha1|sha256|sha384|sha512|blake3):[0-9a-f]{8})[0-9a-f]+\b`)

// ShortRevision returns a revision as flux get shows it: with eight digits of a digest.
func ShortRevision(revision string) string { return digests.ReplaceAllString(revision, "$1") }

func text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}
