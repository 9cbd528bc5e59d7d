// Package promotion decides on the revision of the pinned source of a GatedSource, and computes the status of the GatedSource. It has no
// client and no clock.
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

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// The fields of the specs of the sources that can be pinned.
var (
	repository = fields.New[sourcev1.GitRepositorySpec]()
	artifact   = fields.New[sourcev1.OCIRepositorySpec]()
	chart      = fields.New[sourcev1.HelmChartSpec]()

	commitPath  = fields.Path(repository, &repository.Reference.Commit)
	branchPath  = fields.Path(repository, &repository.Reference.Branch)
	digestPath  = fields.Path(artifact, &artifact.Reference.Digest)
	versionPath = fields.Path(chart, &chart.Version)

	suspendField  = fields.Name(repository, &repository.Suspend)
	includePath   = fields.Path(repository, &repository.Include)
	fromPath      = fields.Path(chart, &chart.SourceRef.Kind)
	valuesPath    = fields.Path(chart, &chart.ValuesFiles)
	intervalField = fields.Name(repository, &repository.Interval)
	timeoutField  = fields.Name(repository, &repository.Timeout)
)

// forms holds the patterns of revisions that can be pinned, by kind. Revisions of Git and OCI have an optional name and an immutable part.
var forms = map[string]*regexp.Regexp{
	sourcev1.GitRepositoryKind: regexp.MustCompile(`^(?:(\S+)@)?sha(?:1:([0-9a-f]{40})|256:([0-9a-f]{64}))$`),
	sourcev1.OCIRepositoryKind: regexp.MustCompile(`^(?:(\S+)@)?(sha256:[0-9a-f]{64})$`),
	sourcev1.HelmChartKind:     regexp.MustCompile(`^(v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?)(\+[0-9A-Za-z.-]+)?$`),
}

// formOf describes the form of revisions for messages, by kind.
var formOf = map[string]string{
	sourcev1.GitRepositoryKind: "main@sha1:<commit>", sourcev1.OCIRepositoryKind: "latest@sha256:<digest>", sourcev1.HelmChartKind: "6.5.1",
}

// checkRevision returns an error if a revision cannot be pinned.
func checkRevision(kind, revision string) error {
	if !forms[kind].MatchString(revision) {
		return fmt.Errorf(msgRevisionForm, revision, kind, formOf[kind])
	}
	return nil
}

// unpinnable returns why a source cannot be pinned, empty if it can.
func unpinnable(kind string, spec map[string]any) string {
	from, _, _ := unstructured.NestedString(spec, fromPath...)
	includes, _, _ := unstructured.NestedSlice(spec, includePath...)
	switch {
	case kind == sourcev1.HelmChartKind && from != sourcev1.HelmRepositoryKind:
		return fmt.Sprintf(msgChartSource, from)
	case len(includes) > 0:
		return msgInclude
	}
	return ""
}

// pin returns the spec of a source with its revision pinned. No field of the result can select another revision.
func pin(kind string, original map[string]any, revision string) map[string]any {
	spec := runtime.DeepCopyJSON(original)
	delete(spec, suspendField)
	delete(spec, refField(kind))
	set := func(value string, path []string) { _ = unstructured.SetNestedField(spec, value, path...) } // the parent has no other fields
	parts := forms[kind].FindStringSubmatch(revision)
	switch kind {
	case sourcev1.GitRepositoryKind:
		set(parts[2]+parts[3], commitPath)
		// With the branch, the revision keeps its text. A tag is not a branch, and a commit that has moved to another branch is no longer on this
		// one.
		if branch, _, _ := unstructured.NestedString(original, branchPath...); branch != "" && branch == parts[1] {
			set(branch, branchPath)
		}
	case sourcev1.OCIRepositoryKind:
		set(parts[2], digestPath)
	case sourcev1.HelmChartKind:
		set(parts[1]+parts[2], versionPath)
		if files, _, _ := unstructured.NestedSlice(spec, valuesPath...); len(files) > 0 {
			set(parts[1], versionPath) // source-controller adds the generation of the HelmChart
		}
	}
	return spec
}

// pinnedTo returns the revision that a spec is pinned to, empty if it is not pinned.
func pinnedTo(kind string, spec map[string]any) string {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(spec, path...)
		return value
	}
	revision := ""
	switch commit := text(commitPath...); kind {
	case sourcev1.GitRepositoryKind:
		revision = "sha1:" + commit
		if len(commit) == 2*sha256.Size {
			revision = "sha256:" + commit
		}
		if branch := text(branchPath...); branch != "" {
			revision = branch + "@" + revision
		}
	case sourcev1.OCIRepositoryKind:
		revision = text(digestPath...)
	case sourcev1.HelmChartKind:
		revision = text(versionPath...)
	}
	if checkRevision(kind, revision) != nil {
		return ""
	}
	return revision
}

// hasContent returns whether a revision determines its content. Unlike a commit or a digest, a version can have other content elsewhere.
func hasContent(kind string) bool { return kind != sourcev1.HelmChartKind }

// same returns whether two revisions have the same content, ignoring the names of branches and tags.
func same(kind, a, b string) bool {
	if kind == sourcev1.HelmChartKind {
		return forms[kind].ReplaceAllString(a, "$1") == forms[kind].ReplaceAllString(b, "$1")
	}
	return a[strings.LastIndex(a, "@")+1:] == b[strings.LastIndex(b, "@")+1:]
}

// digestOf returns a digest of the fields of a source that determine the content of a revision.
func digestOf(kind string, spec map[string]any) string {
	rest := maps.Clone(spec)
	for _, field := range []string{suspendField, intervalField, timeoutField, refField(kind)} {
		delete(rest, field)
	}
	return fmt.Sprintf("%x", sha256.Sum256(encode(rest)))[:16]
}

// refField returns the name of the spec field that selects the revision.
func refField(kind string) string {
	if kind == sourcev1.HelmChartKind {
		return versionPath[0]
	}
	return commitPath[0]
}

// isSuspended returns whether a spec suspends its source.
func isSuspended(spec map[string]any) bool { return spec[suspendField] == true }

// isSpec returns whether the spec of a source equals raw, except for the suspend field, which users and other Gates may set.
func isSpec(spec map[string]any, raw []byte) bool {
	spec = maps.Clone(spec)
	delete(spec, suspendField)
	return reflect.DeepEqual(spec, decode(raw))
}

func encode(spec map[string]any) []byte {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err) // it was read as JSON
	}
	return raw
}

// decode parses a spec into the types of an unstructured object.
func decode(raw []byte) (spec map[string]any) {
	if err := utiljson.Unmarshal(raw, &spec); err != nil {
		return nil // only the controller writes it
	}
	return spec
}
