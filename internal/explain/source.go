package explain

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/target"
)

var sourceVersion = sourcev1.GroupVersion.String()

// SourceOf returns the object whose revision a Kustomization or a HelmRelease applies, or a GatedSource follows. It returns false for
// other objects. It ignores the version in the apiVersion of these objects.
func SourceOf(obj *unstructured.Unstructured) (Ref, bool) {
	applier, ok := target.As[target.Applier](obj)
	if !ok {
		return Ref{}, false
	}
	ref, ok := applier.Source(obj)
	return Ref{ref.APIVersion, ref.Kind, ref.Namespace, ref.Name}, ok
}

var digests = regexp.MustCompile(`\b((?:sha1|sha256|sha384|sha512|blake3):[0-9a-f]{8})[0-9a-f]+\b`)

// ShortRevision shortens a revision like flux get, to eight digits of a digest.
func ShortRevision(revision string) string { return digests.ReplaceAllString(revision, "$1") }

func text(obj *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, path...)
	return value
}
