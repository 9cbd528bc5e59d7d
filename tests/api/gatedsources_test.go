package api_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// gatedSource returns a GatedSource that follows the GitRepository apps, after a change to its spec.
func gatedSource(name string, change func(*v1alpha1.GatedSourceSpec)) *v1alpha1.GatedSource {
	g := &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.GatedSourceSpec{SourceRef: v1alpha1.PinnableReference{Kind: "GitRepository", Name: "apps"}}}
	if change != nil {
		change(&g.Spec)
	}
	return g
}

// pinning returns a valid spec of a GatedSource with additional fields.
func pinning(more string) string { return `{sourceRef: {kind: GitRepository, name: apps}` + more + `}` }

var badSources = []badSpec{
	{"a bucket", `{sourceRef: {kind: Bucket, name: apps}}`, "spec.sourceRef", "a Bucket cannot be pinned: it has only the newest revision"},
	{"an unknown kind", `{sourceRef: {kind: Secret, name: apps}}`, "spec.sourceRef", "kind must be GitRepository, OCIRepository or HelmChart"},
	{"no source", `{}`, "spec.sourceRef", "Required value"},
	{"its own source by its name", pinning(`, pinnedName: apps`), "spec", "pinnedName must differ from sourceRef.name"},
	{"approvals without a number", pinning(`, approvals: {}`), "spec.approvals.required", "Required value"},
	{"-1 approvals", pinning(`, approvals: {required: -1}`), "spec.approvals.required", "should be greater than or equal to 0"},
	{"too many approvals", pinning(`, approvals: {required: 11}`), "spec.approvals.required", "should be less than or equal to 10"},
	{"a revision with a blank", pinning(`, revision: main x`), "spec.revision", "revision must have the format of source-controller"},
	{"a revision of two lines", pinning(`, revision: "a\nb"`), "spec.revision", "revision must have the format of source-controller"},
	{"a revision that is too long", pinning(`, revision: ` + long(513)), "spec.revision", "512"},
	{"a source with an invalid name", `{sourceRef: {kind: GitRepository, name: Apps}}`, "spec.sourceRef.name", "name must be the name of a source"},
	{"a pinned source with an invalid name", pinning(`, pinnedName: a_b`), "spec.pinnedName", "pinnedName must be the name of a source"},
	{"a source without a kind", `{sourceRef: {name: apps}}`, "spec.sourceRef.kind", "Required value"},
	{"a source without a name", `{sourceRef: {kind: GitRepository}}`, "spec.sourceRef.name", "Required value"},
	{"a source whose name is too long", `{sourceRef: {kind: GitRepository, name: ` + long(254) + `}}`, "spec.sourceRef.name", "253"},
	{"a pinned source whose name is too long", pinning(`, pinnedName: ` + long(254)), "spec.pinnedName", "253"},
	{"an unknown deletion policy", pinning(`, deletionPolicy: Keep`), "spec.deletionPolicy", "Unsupported value"},
}

var goodSources = map[string]string{
	"a repository": pinning(``),
	"a revision":   pinning(`, revision: "main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11"`),
	"a branch with all characters that Git allows": pinning(`, revision: "feature/a,revision=b@c#d+e$%&!(){}|;<>\"'` + "`" + `_é.f-g@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11"`),
	"no approvals":  pinning(`, approvals: {required: 0}`),
	"with approval": pinning(`, approvals: {required: 2}, deletionPolicy: Delete, pinnedName: pinned`),
}

func TestInvalidNamesOfPinnedSourcesAreRefused(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	for name, want := range map[string]string{
		"apps": "the pinned source would have the same name as the source in sourceRef", strings.Repeat("a", 248): "the default name of the pinned source would be too long",
	} {
		g := gatedSource(name, func(s *v1alpha1.GatedSourceSpec) { s.SourceRef.Name = "apps-gated" })
		g.Namespace = w.Namespace
		if err := w.Client.Create(t.Context(), g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestGatedSourceKindIsImmutable(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	g := gatedSource("apps", nil)
	w.Create(g)
	if g.Spec.Approvals != nil || g.Spec.DeletionPolicy != v1alpha1.DeletionPolicyOrphan || g.Status.ObservedGeneration != -1 {
		t.Errorf("the defaults are %+v, %d", g.Spec, g.Status.ObservedGeneration)
	}
	if err := w.Merge(g, `{"spec":{"sourceRef":{"kind":"OCIRepository"}}}`); err == nil || !strings.Contains(err.Error(), "the kind cannot be changed") {
		t.Errorf("got %v", err)
	}
	w.Must(w.Merge(g, `{"spec":{"sourceRef":{"name":"else"}}}`))
}
