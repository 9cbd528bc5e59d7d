package target_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/internal/target"
)

// kinds are the kinds that are supported by default.
var kinds = []string{
	"Bucket.source.toolkit.fluxcd.io",
	"Certificate.cert-manager.io",
	"GatedSource.gating.toolkit.fluxcd.io",
	"GitRepository.source.toolkit.fluxcd.io",
	"HelmChart.source.toolkit.fluxcd.io",
	"HelmRelease.helm.toolkit.fluxcd.io",
	"HelmRepository.source.toolkit.fluxcd.io",
	"ImagePolicy.image.toolkit.fluxcd.io",
	"ImageRepository.image.toolkit.fluxcd.io",
	"ImageUpdateAutomation.image.toolkit.fluxcd.io",
	"Kustomization.kustomize.toolkit.fluxcd.io",
	"OCIRepository.source.toolkit.fluxcd.io",
}

func TestRegistryIsComplete(t *testing.T) {
	var got []string
	for _, adapter := range target.All() {
		got = append(got, adapter.GroupKind().String())
	}
	if !slices.Equal(got, kinds) {
		t.Errorf("got  %v\nwant %v", got, kinds)
	}
}

func TestForFindsKind(t *testing.T) {
	for name, tc := range map[string]struct{ apiVersion, kind, want, err string }{
		"kind alone":                  {"", "HelmRelease", "HelmRelease.helm.toolkit.fluxcd.io", ""},
		"kind and version":            {"helm.toolkit.fluxcd.io/v2", "HelmRelease", "HelmRelease.helm.toolkit.fluxcd.io", ""},
		"the version does not matter": {"helm.toolkit.fluxcd.io/v7", "HelmRelease", "HelmRelease.helm.toolkit.fluxcd.io", ""},
		"an unknown kind":             {"", "Deployment", "", "kind Deployment is not supported"},
		"a kind in lower case":        {"", "kustomization", "", "kind kustomization is not supported"},
		"an empty kind":               {"", "", "", "is not supported"},
		"a core kind":                 {"v1", "Secret", "", "kind Secret of v1 is not supported"},
		"a kind of another group":     {"kustomize.config.k8s.io/v1beta1", "Kustomization", "", "kind Kustomization of kustomize.config.k8s.io/v1beta1 is not supported"},
		"a broken apiVersion":         {"a/b/c", "Kustomization", "", `apiVersion "a/b/c" must have the form group/version`},
	} {
		t.Run(name, func(t *testing.T) {
			adapter, err := target.For(tc.apiVersion, tc.kind)
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err == "" && adapter.GroupKind().String() != tc.want:
				t.Errorf("got %s", adapter.GroupKind())
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got error %v, want %q", err, tc.err)
			}
		})
	}
}

// registrations counts the calls of register in a file and returns the kind of
// the last one.
func registrations(t *testing.T, file *ast.File) (calls int, gk schema.GroupKind) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "register" {
			calls++
		}
		if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "suspend" && len(call.Args) >= 2 {
			gk = groupKind(call.Args[1])
		}
		return true
	})
	if calls == 1 && gk.Empty() {
		for _, adapter := range target.All() { // a kind with its own adapter
			if kind := adapter.GroupKind(); file.Scope.Lookup(kind.Kind) != nil {
				gk = kind
			}
		}
	}
	return calls, gk
}

// groupKind returns the supported kind of a constant such as sourcev1.BucketKind.
func groupKind(constant ast.Expr) schema.GroupKind {
	selector, ok := constant.(*ast.SelectorExpr)
	if !ok {
		return schema.GroupKind{}
	}
	adapter, err := target.For("", strings.TrimSuffix(selector.Sel.Name, "Kind"))
	if err != nil {
		return schema.GroupKind{}
	}
	return adapter.GroupKind()
}

func TestEachKindIsOneFileWithItsRBAC(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	markers := regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:(.*)$`)
	found := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		calls, gk := registrations(t, parsed)
		if strings.HasSuffix(name, "_test.go") || calls == 0 {
			continue
		}
		found++
		if calls != 1 {
			t.Errorf("%s registers %d kinds, want one per file", name, calls)
		}
		if want := strings.ToLower(gk.Kind) + ".go"; name != want {
			t.Errorf("%s registers %s, which belongs into %s", name, gk.Kind, want)
		}
		plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))
		want := []string{"groups=" + gk.Group + ",resources=" + plural.Resource + ",verbs=get;list;watch"}
		if gk != target.GatedSource { // no write holds a GatedSource
			want[0] += ";patch"
		}
		want = append(want, "groups="+gk.Group+",resources="+plural.Resource+"/status,verbs=get;patch")
		var got []string
		for _, m := range markers.FindAllStringSubmatch(string(source), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the RBAC markers %q, want %q", name, got, want)
		}
	}
	if found != len(target.All()) {
		t.Errorf("%d files register %d kinds", found, len(target.All()))
	}
}
