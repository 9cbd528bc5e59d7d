package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// shown is an object with a status in YAML, and the page that documents the output of kubectl get for it.
type shown struct {
	page, kind, name, spec, status string
	// wide has the additional columns of -o wide and their cells.
	wide []string
}

var allShown = []shown{
	{"docs/reference/gates.md", v1alpha1.GateKind, "production", `{default: closed}`, `
conditions:
- {type: Opened, status: "False", reason: OutsideOpenPeriods, message: Gate closed, lastTransitionTime: "2026-11-23T16:41:57Z"}
- {type: Ready, status: "True", reason: Succeeded, message: 1 of 1 targets held, lastTransitionTime: "2026-11-23T16:41:57Z"}
nextTransition: {at: "2026-11-23T21:00:00Z", state: opened, reason: OpenPeriod}
targets: {total: 1, held: 1, suspendedByOthers: 0, failed: 0}`, []string{"SUSPENDED MODE MESSAGE", "Enforce Gate closed"}},
	{"docs/reference/gateexceptions.md", v1alpha1.GateExceptionKind, "hotfix", `
gateRef: {name: production}
validFrom: "2026-11-28T00:00:00+01:00"
validUntil: "2026-11-29T00:00:00+01:00"
openPeriods: [{name: a, from: "2026-11-28T00:00:00+01:00", until: "2026-11-29T00:00:00+01:00"}]`, `
conditions:
- {type: Active, status: "False", reason: Pending, message: later, lastTransitionTime: "2026-11-21T16:41:57Z"}
- {type: Ready, status: "True", reason: Succeeded, message: Exception applies later, lastTransitionTime: "2026-11-21T16:41:57Z"}`,
		[]string{"DEFAULT STATUS", "Exception applies later"}},
	{"docs/reference/gatereceivers.md", v1alpha1.GateReceiverKind, "smoke-tests", `{type: generic-hmac, secretRef: {name: s}, gateRefs: [{name: production}], action: open}`, `
conditions:
- {type: Ready, status: "True", reason: Succeeded, message: Webhooks are accepted at the path in status.webhookPath, lastTransitionTime: "2026-11-21T16:41:57Z"}`,
		[]string{"SUSPENDED", ""}},
	{"docs/reference/calendarfeeds.md", v1alpha1.CalendarFeedKind, "production", `{secretRef: {name: s}, selector: {}}`, `
conditions:
- {type: Ready, status: "True", reason: Succeeded, message: The calendar is served at the path in status.calendarPath, lastTransitionTime: "2026-11-21T16:41:57Z"}`,
		[]string{"SUSPENDED", ""}},
}

// create creates the object in a world.
func (s *shown) create(w *harness.World) {
	w.Helper()
	obj, spec, status := &unstructured.Unstructured{Object: map[string]any{}}, map[string]any{}, map[string]any{}
	w.Must(yaml.Unmarshal([]byte(s.spec), &spec))
	w.Must(yaml.Unmarshal([]byte(s.status), &status))
	obj.Object["spec"] = spec
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(s.kind))
	obj.SetName(s.name)
	w.Create(obj)
	patch := client.MergeFrom(obj.DeepCopy())
	obj.Object["status"] = status
	w.Must(w.Client.Status().Patch(w.Context(), obj, patch))
}

var age = regexp.MustCompile(`\b[0-9]+[smhd]\b`)

// words returns the lines of a table, with one space between words and without the age.
func words(table string) (lines []string) {
	for line := range strings.Lines(table) {
		lines = append(lines, age.ReplaceAllString(strings.Join(strings.Fields(line), " "), "<age>"))
	}
	return lines
}

func TestDocsShowKubectlGetOutput(t *testing.T) {
	for _, s := range allShown {
		t.Run(s.page, func(t *testing.T) {
			w := harness.NewWorld(t, cluster)
			content, err := os.ReadFile(filepath.Join(harness.Root(), filepath.FromSlash(s.page)))
			w.Must(err)
			page := regexp.MustCompile(`(?m)^ *NAME .*\n.*\n`).FindString(string(content))
			s.create(w)
			resource := strings.ToLower(s.kind) + "s"
			table, err := w.Kubectl(t.Context(), "--namespace="+w.Namespace, "get", resource)
			w.Must(err)
			want := words(page)
			if got := words(table); !slices.Equal(got, want) {
				t.Errorf("kubectl shows\n%s\nthe page shows\n%s", table, page)
			}
			if i := slices.IndexFunc(strings.Split(table, "\n"), func(line string) bool { return len(line) > 110 }); i >= 0 {
				t.Errorf("with a longer name, the table is too wide for a terminal of 120 columns:\n%s", table)
			}
			table, err = w.Kubectl(t.Context(), "--namespace="+w.Namespace, "get", resource, "-o=wide")
			w.Must(err)
			for i := range want {
				want[i] = strings.TrimSpace(want[i] + " " + s.wide[i])
			}
			if got := words(table); !slices.Equal(got, want) {
				t.Errorf("kubectl -o wide shows\n%s\nwant\n%s", table, strings.Join(want, "\n"))
			}
		})
	}
}
