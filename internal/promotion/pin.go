// Package promotion decides what a GatedSource does: which revision its pinned source is to have, and what its status
// says. It is pure: it has no client and no clock.
package promotion

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The kinds of sources that can be pinned.
const (
	GitRepository = "GitRepository"
	OCIRepository = "OCIRepository"
	HelmChart     = "HelmChart"
)

// forms are those of the revisions that can be pinned: for Git and OCI a name, which may be missing, and what cannot change.
var forms = map[string]*regexp.Regexp{
	GitRepository: regexp.MustCompile(`^(?:(\S+)@)?sha(?:1:([0-9a-f]{40})|256:([0-9a-f]{64}))$`),
	OCIRepository: regexp.MustCompile(`^(?:(\S+)@)?(sha256:[0-9a-f]{64})$`),
	HelmChart:     regexp.MustCompile(`^(v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)(\+[0-9A-Za-z.-]+)?$`),
}

// formOf says what a revision of a kind looks like.
var formOf = map[string]string{
	GitRepository: "main@sha1:<commit>", OCIRepository: "latest@sha256:<digest>", HelmChart: "6.5.1",
}

// checkRevision returns an error if a revision cannot be pinned.
func checkRevision(kind, revision string) error {
	if !forms[kind].MatchString(revision) {
		return fmt.Errorf("%q is not a revision of a %s: it must be of the form %s", revision, kind, formOf[kind])
	}
	return nil
}

// unpinnable says why a source cannot be pinned. It is empty if it can.
func unpinnable(kind string, spec map[string]any) string {
	from, _, _ := unstructured.NestedString(spec, "sourceRef", "kind")
	includes, _, _ := unstructured.NestedSlice(spec, "include")
	switch {
	case kind == HelmChart && from != "HelmRepository":
		return fmt.Sprintf("its chart comes from a %s, in which no version can be chosen: pin that source instead", from)
	case len(includes) > 0:
		return "its spec.include brings in what other sources have, which is not pinned with it"
	}
	return ""
}

// pin returns the spec of a source, pinned to a revision. It depends on nothing else that changes.
func pin(kind string, original map[string]any, revision string) map[string]any {
	spec := runtime.DeepCopyJSON(original)
	delete(spec, "suspend")
	parts := forms[kind].FindStringSubmatch(revision)
	switch kind {
	case GitRepository:
		ref := map[string]any{"commit": parts[2] + parts[3]}
		// With the branch the revision reads as before. A tag is none, and a commit that has moved to another branch is not on this one.
		if branch, _, _ := unstructured.NestedString(original, "ref", "branch"); branch != "" && branch == parts[1] {
			ref["branch"] = branch
		}
		spec["ref"] = ref
	case OCIRepository:
		spec["ref"] = map[string]any{"digest": parts[2]}
	case HelmChart:
		spec["version"] = parts[1] + parts[2]
		if files, _, _ := unstructured.NestedSlice(spec, "valuesFiles"); len(files) > 0 {
			spec["version"] = parts[1] // source-controller adds the generation of the HelmChart
		}
	}
	return spec
}

// pinnedTo returns the revision that a spec is pinned to, empty if it is not.
func pinnedTo(kind string, spec map[string]any) string {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(spec, path...)
		return value
	}
	revision := ""
	switch commit := text("ref", "commit"); kind {
	case GitRepository:
		revision = "sha1:" + commit
		if len(commit) == 2*sha256.Size {
			revision = "sha256:" + commit
		}
		if branch := text("ref", "branch"); branch != "" {
			revision = branch + "@" + revision
		}
	case OCIRepository:
		revision = text("ref", "digest")
	case HelmChart:
		revision = text("version")
	}
	if checkRevision(kind, revision) != nil {
		return ""
	}
	return revision
}

// same returns whether two revisions of a kind are of the same content, also if a branch or tag has another name.
func same(kind, a, b string) bool {
	if kind == HelmChart {
		return forms[kind].ReplaceAllString(a, "$1") == forms[kind].ReplaceAllString(b, "$1")
	}
	return a[strings.LastIndex(a, "@")+1:] == b[strings.LastIndex(b, "@")+1:]
}

// digestOf returns a digest of all in the spec of a source that decides what a revision brings.
func digestOf(kind string, spec map[string]any) string {
	rest := maps.Clone(spec)
	for _, field := range []string{"suspend", "interval", "timeout", refField(kind)} {
		delete(rest, field)
	}
	return fmt.Sprintf("%x", sha256.Sum256(encode(rest)))[:16]
}

func refField(kind string) string {
	if kind == HelmChart {
		return "version"
	}
	return "ref"
}

// isSpec returns whether a source has a spec. Whether it is suspended does not matter: that is for people and other Gates.
func isSpec(spec map[string]any, raw []byte) bool {
	spec = maps.Clone(spec)
	delete(spec, "suspend")
	return reflect.DeepEqual(spec, decode(raw))
}

func encode(spec map[string]any) []byte {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err) // it was read as JSON
	}
	return raw
}

// decode reads a spec with the types that an unstructured object has.
func decode(raw []byte) (spec map[string]any) {
	if err := utiljson.Unmarshal(raw, &spec); err != nil {
		return nil // nobody but the controller writes it
	}
	return spec
}
