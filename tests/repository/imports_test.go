// Package repository checks rules of the repository that no linter supports.
package repository

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/fluxcd/gating-controller/"
	// root is the root folder of the repository. A package that imports tests/harness for it is left out of "make check".
	root = "../.."
)

// mayImport lists the packages of this repository that the files of each package may import. All may import api, which contains only
// names.
var mayImport = map[string][]string{
	"api/v1alpha1":          {},
	"api/lock/v1alpha1":     {},
	"internal/tz":           {},
	"internal/tz/pack":      {"internal/tz"},
	"internal/tz/tztest":    {"internal/tz"},
	"internal/version":      {"internal/tz"},
	"internal/schedule":     {"internal/tz"},
	"internal/expression":   {"internal/tz"},
	"internal/ical":         {"internal/schedule"},
	"internal/suggest":      {},
	"internal/annotations":  {"api/v1alpha1", "internal/suggest"},
	"internal/format":       {},
	"internal/ledger":       {"api/v1alpha1", "internal/annotations", "internal/schedule", "internal/format"},
	"internal/timetable":    {"api/v1alpha1", "internal/ical", "internal/schedule", "internal/format"},
	"internal/gate":         {"api/v1alpha1", "internal/annotations", "internal/expression", "internal/ledger", "internal/schedule", "internal/format", "internal/timetable"},
	"internal/fields":       {},
	"internal/target":       {"internal/fields"},
	"internal/verdict":      {"api/v1alpha1", "internal/gate", "internal/target", "internal/tz", "internal/ledger", "internal/format"},
	"internal/dryrun":       {"internal/fields"},
	"internal/explain":      {"api/v1alpha1", "internal/fields", "internal/gate", "internal/target", "internal/verdict", "internal/ledger", "internal/timetable"},
	"internal/applier":      {"api/v1alpha1", "internal/gate", "internal/target", "internal/verdict"},
	"internal/summary":      {"api/v1alpha1", "internal/target", "internal/verdict"},
	"internal/queue":        {},
	"internal/lock":         {"api/lock/v1alpha1", "api/v1alpha1"},
	"internal/slots":        {},
	"internal/waves":        {"internal/summary", "internal/target"},
	"internal/machinecerts": {},
	"internal/activation":   {},
	"internal/configmap":    {},
	"internal/crds":         {},
	"internal/promotion":    {"api/v1alpha1", "internal/annotations", "internal/fields", "internal/format", "internal/ledger"},
	"internal/endpoint":     {"api/v1alpha1"},
	"internal/calendarfeed": {"api/v1alpha1", "internal/endpoint", "internal/gate", "internal/preview", "internal/timetable"},
	"controllers/ownwrites": {"api/v1alpha1"},
	"controllers": {"api/v1alpha1", "controllers/calendars", "controllers/enqueue", "controllers/events", "controllers/exception", "controllers/gate", "controllers/gatedsource", "controllers/lock", "controllers/ownwrites", "controllers/rollout",
		"controllers/target", "controllers/targetkind", "controllers/view", "internal/applier", "internal/summary", "internal/target"},
	"controllers/view":           {"api/lock/v1alpha1", "api/v1alpha1", "controllers/ownwrites", "internal/crds", "internal/fields", "internal/gate", "internal/target", "internal/verdict"},
	"controllers/enqueue":        {"api/lock/v1alpha1", "api/v1alpha1", "controllers/ownwrites", "controllers/view", "internal/gate", "internal/ledger", "internal/queue", "internal/summary", "internal/target", "internal/verdict", "internal/waves"},
	"controllers/events":         {"api/v1alpha1", "controllers/view", "internal/gate", "internal/ledger", "internal/summary", "internal/target", "internal/verdict"},
	"controllers/calendars":      {"api/v1alpha1", "controllers/enqueue", "controllers/view", "internal/configmap", "internal/gate", "internal/summary", "internal/timetable"},
	"controllers/rollout":        {"api/v1alpha1", "controllers/enqueue", "internal/format", "internal/gate", "internal/queue", "internal/slots", "internal/summary", "internal/target", "internal/verdict", "internal/waves"},
	"controllers/exception":      {"api/v1alpha1", "controllers/calendars", "controllers/enqueue", "controllers/events", "controllers/ownwrites", "controllers/view", "internal/gate", "internal/timetable"},
	"controllers/gate":           {"api/v1alpha1", "controllers/calendars", "controllers/enqueue", "controllers/events", "controllers/ownwrites", "controllers/rollout", "controllers/view", "internal/annotations", "internal/applier", "internal/explain", "internal/gate", "internal/ledger", "internal/queue", "internal/slots", "internal/summary", "internal/target", "internal/timetable", "internal/verdict", "internal/waves"},
	"controllers/gatedsource":    {"api/v1alpha1", "controllers/enqueue", "controllers/events", "controllers/ownwrites", "controllers/rollout", "controllers/view", "internal/fields", "internal/promotion", "internal/summary", "internal/target", "internal/verdict", "internal/waves"},
	"controllers/lock":           {"api/lock/v1alpha1", "api/v1alpha1", "controllers/ownwrites", "controllers/view", "internal/gate", "internal/lock", "internal/summary", "internal/target", "internal/verdict"},
	"controllers/receiver":       {"api/v1alpha1", "controllers/enqueue", "controllers/ownwrites"},
	"controllers/target":         {"api/v1alpha1", "controllers/enqueue", "controllers/events", "controllers/ownwrites", "controllers/rollout", "controllers/view", "internal/activation", "internal/gate", "internal/lock", "internal/summary", "internal/target", "internal/verdict", "internal/waves"},
	"controllers/targetkind":     {"api/v1alpha1", "controllers/enqueue", "controllers/view", "internal/queue", "internal/summary", "internal/target"},
	"controllers/machine":        {"api/v1alpha1", "controllers/ownwrites", "internal/crds", "internal/machinecerts", "internal/verdict"},
	"controllers/controllertest": {"api/lock/v1alpha1", "api/v1alpha1", "controllers", "controllers/enqueue", "controllers/events", "controllers/gatedsource", "controllers/view", "internal/queue", "internal/summary", "internal/target", "internal/tz/tztest", "internal/verdict", "tests/harness"},
	"receivers":                  {"api/v1alpha1", "internal/annotations", "internal/endpoint", "internal/gate", "internal/expression", "internal/ledger"},
	"internal/app":               {"controllers", "controllers/calendars", "controllers/enqueue", "controllers/events", "controllers/exception", "controllers/gate", "controllers/machine", "controllers/receiver", "controllers/view", "receivers", "api/lock/v1alpha1", "api/v1alpha1", "internal/configmap", "internal/endpoint", "internal/calendarfeed", "internal/target", "internal/tz", "internal/version", "internal/webauth"},
	"internal/preview":           {"api/v1alpha1", "internal/annotations", "internal/gate", "internal/schedule", "internal/target", "internal/tz", "internal/verdict", "internal/ledger", "internal/format", "internal/timetable"},
	"internal/validate":          {"api/v1alpha1", "config", "internal/expression", "internal/gate", "internal/suggest", "internal/timetable"},
	"internal/preview/files":     {"internal/preview"},
	"config":                     {},
	"internal/suspendkinds":      {"config", "internal/target"},
	"internal/check":             {"api/v1alpha1", "internal/annotations", "internal/schedule", "internal/gate", "internal/applier", "internal/target", "internal/verdict", "internal/timetable"},
	"internal/cli":               {"api/v1alpha1", "internal/cli/act", "internal/cli/describe", "internal/cli/kube", "internal/cli/plan", "internal/cli/see", "internal/cli/term", "internal/preview", "internal/tz", "internal/version"},
	"internal/webauth":           {"api/v1alpha1", "internal/limit", "internal/endpoint", "internal/explain", "internal/gate", "internal/preview", "internal/target", "internal/ui", "internal/verdict", "internal/timetable"},
	"internal/ui":                {"api/v1alpha1", "internal/limit", "internal/explain", "internal/gate", "internal/preview", "internal/tz", "internal/ledger", "internal/format"},
	"cmd/kubectl-gate":           {"internal/cli"},
	".":                          {"internal/app", "internal/version"},
	"internal/cli/see":           {"api/v1alpha1", "internal/applier", "internal/check", "internal/cli/describe", "internal/cli/kube", "internal/cli/term", "internal/dryrun", "internal/explain", "internal/fields", "internal/format", "internal/gate", "internal/ledger", "internal/preview", "internal/target", "internal/timetable", "internal/tz", "internal/ui", "internal/validate", "internal/verdict", "internal/version"},
	"internal/cli/term/termtest": {"api/v1alpha1", "internal/cli/term"},
	"internal/cli/kube":          {"api/v1alpha1", "internal/check", "internal/cli/term", "internal/gate", "internal/preview", "internal/suggest", "internal/target", "internal/timetable", "internal/validate", "internal/verdict"},
	"internal/cli/term":          {"api/v1alpha1", "internal/format", "internal/preview", "internal/tz"},
	"internal/cli/plan":          {"api/v1alpha1", "internal/check", "internal/cli/kube", "internal/cli/term", "internal/explain", "internal/format", "internal/preview", "internal/preview/files", "internal/suspendkinds", "internal/target", "internal/tz", "internal/validate"},
	"internal/cli/describe":      {"api/v1alpha1", "internal/format", "internal/gate", "internal/ledger", "internal/preview"},
	"internal/cli/act":           {"api/v1alpha1", "internal/annotations", "internal/check", "internal/cli/describe", "internal/cli/kube", "internal/cli/term", "internal/explain", "internal/format", "internal/gate", "internal/ledger", "internal/preview", "internal/promotion", "internal/schedule", "internal/target", "internal/timetable", "internal/verdict"},
	"internal/limit":             {},
}

// mayImportOthers lists the packages that some folders may import in addition to those of this repository and of the standard library, by
// prefix.
var mayImportOthers = map[string][]string{
	"internal/schedule":      {"github.com/robfig/cron/v3"},
	"internal/ical":          {},
	"internal/suggest":       {},
	"internal/annotations":   {},
	"internal/format":        {},
	"internal/ledger":        {"k8s.io/apimachinery/"},
	"internal/timetable":     {"k8s.io/apimachinery/"},
	"api/v1alpha1":           {"k8s.io/apimachinery/", "github.com/fluxcd/pkg/apis/meta"},
	"internal/expression":    {"github.com/google/cel-go/", "k8s.io/utils/lru"},
	"internal/gate":          {"k8s.io/apimachinery/", "k8s.io/utils/ptr", "github.com/fluxcd/pkg/apis/meta", "github.com/fluxcd/pkg/runtime/conditions", "github.com/fluxcd/kustomize-controller/api/", "github.com/fluxcd/source-controller/api/"},
	"internal/validate":      {"k8s.io/apimachinery/", "k8s.io/apiextensions-apiserver/", "k8s.io/apiserver/pkg/apis/cel", "sigs.k8s.io/yaml"},
	"internal/preview":       {"k8s.io/apimachinery/", "sigs.k8s.io/json", "sigs.k8s.io/yaml"},
	"internal/preview/files": {"k8s.io/apimachinery/pkg/util/yaml", "sigs.k8s.io/kustomize/", "sigs.k8s.io/yaml"},
	"internal/target":        {"k8s.io/apimachinery/", "github.com/fluxcd/kustomize-controller/api/", "github.com/fluxcd/source-controller/api/", "github.com/fluxcd/helm-controller/api/", "github.com/fluxcd/image-reflector-controller/api/", "github.com/fluxcd/image-automation-controller/api/", "github.com/fluxcd/notification-controller/api/", "github.com/fluxcd/pkg/apis/meta"},
	"internal/verdict":       {"k8s.io/apimachinery/", "github.com/fluxcd/pkg/apis/meta", "k8s.io/utils/ptr"},
	"internal/check":         {"k8s.io/apimachinery/", "github.com/fluxcd/pkg/apis/meta"},
	"internal/explain":       {"k8s.io/apimachinery/", "github.com/fluxcd/kustomize-controller/api/", "github.com/fluxcd/source-controller/api/", "github.com/fluxcd/helm-controller/api/", "github.com/fluxcd/image-reflector-controller/api/", "github.com/fluxcd/image-automation-controller/api/"},
	"internal/applier":       {"k8s.io/apimachinery/", "github.com/fluxcd/kustomize-controller/api/", "github.com/fluxcd/source-controller/api/", "github.com/fluxcd/helm-controller/api/"},
	"internal/ui":            {"k8s.io/apimachinery/", "github.com/fluxcd/pkg/apis/meta", "k8s.io/utils/clock", "sigs.k8s.io/yaml"},
	"internal/summary":       {"k8s.io/apimachinery/"},
	"internal/queue":         {},
	"internal/lock":          {"k8s.io/apimachinery/"},
	"internal/slots":         {},
	"internal/machinecerts":  {},
	"internal/activation":    {"k8s.io/apimachinery/"},
	"internal/promotion":     {"k8s.io/apimachinery/", "github.com/fluxcd/source-controller/api/", "github.com/fluxcd/pkg/apis/meta"},
	"internal/suspendkinds":  {"k8s.io/apimachinery/", "sigs.k8s.io/yaml"},
	"internal/tz":            {},
	"internal/version":       {},
	"controllers/ownwrites":  {"k8s.io/apimachinery/", "k8s.io/client-go/util/workqueue", "sigs.k8s.io/controller-runtime/"},
	"internal/cli/term":      {"golang.org/x/term", "github.com/spf13/cobra", "k8s.io/apimachinery/", "k8s.io/cli-runtime/", "k8s.io/utils/clock"},
	"internal/cli/describe":  {"k8s.io/apimachinery/", "github.com/fluxcd/pkg/apis/meta"},
	"internal/limit":         {"golang.org/x/sync/semaphore", "golang.org/x/time/rate"},
}

func TestImportsFollowTable(t *testing.T) {
	checked := map[string]int{}
	for folder, imports := range importsByFolder(t) {
		allowedHere, listed := mayImport[folder]
		if top, _, _ := strings.Cut(folder, "/"); !listed && folder != "api" && !slices.Contains([]string{"tests", "release", "site"}, top) {
			t.Errorf("%s is not in the table", folder)
		}
		for _, path := range imports {
			checked[folder]++
			if ours, ok := strings.CutPrefix(path, module); ok {
				if listed && ours != "api" && !slices.Contains(allowedHere, ours) {
					t.Errorf("%s must not import %s", folder, ours)
				}
				continue
			}
			allowed, listed := mayImportOthers[folder]
			standard := !strings.Contains(strings.Split(path, "/")[0], ".")
			if listed && !standard && !slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
				t.Errorf("%s must not import %s", folder, path)
			}
		}
	}
	for folder := range mayImport {
		if checked[folder] == 0 {
			t.Errorf("%s is in the table, but has no imports", folder)
		}
	}
}

// The libraries of the API server are large, and the controller does not need them.
func TestOnlyPluginImportsAPIServerValidation(t *testing.T) {
	for folder, imports := range importsByFolder(t) {
		for _, path := range imports {
			if folder != "internal/validate" && (strings.HasPrefix(path, "k8s.io/apiserver/") || strings.HasPrefix(path, "k8s.io/apiextensions-apiserver/pkg/apiserver/")) ||
				path == module+"internal/validate" && !strings.HasPrefix(folder, "internal/cli/") {
				t.Errorf("%s must not import %s", folder, path)
			}
		}
	}
}

// The name of a package for tests, such as controllers/controllertest, ends in test.
func TestTestPackagesAreImportedByTestsOnly(t *testing.T) {
	isForTests := func(folder string) bool {
		return strings.HasSuffix(folder, "test") || strings.HasPrefix(folder, "tests/")
	}
	seen := 0
	for folder, imports := range importsByFolder(t) {
		if isForTests(folder) {
			seen++
			continue
		}
		for _, path := range imports {
			if ours, ok := strings.CutPrefix(path, module); ok && isForTests(ours) {
				t.Errorf("%s must not import %s", folder, ours)
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d packages are for tests", seen)
	}
}

// importsByFolder returns the imports of the files in each folder, without tests.
func importsByFolder(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[filepath.ToSlash(folder)] = append(imports[filepath.ToSlash(folder)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}
