package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// hour are flags for an hour of a Tuesday in the past.
var hour = strings.Fields("--from 2026-11-24T10:00:00Z --until 2026-11-24T11:00:00Z")

// lunch creates an exception that closes a Gate for that hour.
func (w *world) lunch(name, of string) {
	w.Helper()
	at, start, end := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC), "00:00", "24:00"
	w.Create(&v1alpha1.GateException{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.GateExceptionSpec{
			GateRef: v1alpha1.GateReference{Name: of}, TimeZone: "UTC", ValidFrom: metav1.NewTime(at), ValidUntil: metav1.NewTime(at.Add(time.Hour)),
			ClosePeriods: []v1alpha1.Period{{Name: "all", Start: &start, End: &end}}, Default: v1alpha1.StateClosed,
		},
	})
}

// rows returns the lines of a table without its headers and padding, with flux-system as the namespace.
func (w *world) rows(out string) string {
	_, rows, _ := strings.Cut(strings.ReplaceAll(out, w.Namespace, "flux-system"), "\n")
	return strings.Join(strings.Fields(rows), " ")
}

func TestPreviewCountsClusterExceptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("plain", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Gate("strict", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Approvals: &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 1}}})
	w.lunch("lunch", "plain")
	w.lunch("waits", "strict")
	const times = " 2026-11-24T10:00:00Z 2026-11-24T11:00:00Z "
	const strict = "flux-system/strict" + times + "opened Default"
	got := w.gate(append([]string{"preview"}, hour...)...)
	if want := "flux-system/plain" + times + "closed Exception lunch " + strict; w.rows(got.out) != want || got.code != 0 {
		t.Errorf("%+v\nwant %s", got, want)
	}
	if want := "warning: " + w.Namespace + "/waits: the exception lacks 1 of 1 approvals, the preview does not count it\n"; got.errOut != want {
		t.Errorf("%q, want %q", got.errOut, want)
	}
	if got := w.gate(append([]string{"preview", "strict"}, hour...)...); w.rows(got.out) != strict {
		t.Errorf("%+v", got)
	}
}

func TestPreviewCountsRequestInStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ClosedGate("production")
	if got := w.gate("open", "production", "--for", "2h"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	g := w.ReadGate("production")
	got := w.gate("preview", "production", "--until", "3h")
	want := " opened OpenRequested flux-system/production " + g.Status.ResetToDefaultAt.UTC().Format(time.RFC3339) + " "
	if rows := w.rows(got.out); !strings.Contains(rows, want) || !strings.HasSuffix(rows, " closed Default") || got.code != 0 || got.errOut != "" {
		t.Errorf("%+v\nwant %s", got, want)
	}
}

func TestPreviewReportsUnknowns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.lunch("lunch", "production")
	w.Create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "gates-only"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"gates"}, Verbs: []string{"get", "list"}},
	}})
	w.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gates-only"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "gates-only"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "preview-half"}},
	})
	stranger, half := w.as("preview-stranger"), w.as("preview-half")
	refused := "you may not list gateexceptions in namespace \"" + w.Namespace + "\": that needs the verb \"list\", which the ClusterRole gate-viewer has\n"
	if got := half.gate("status", "production"); got.code != 0 || !strings.Contains(got.out, "\nLater transitions are unknown, because the exceptions of the gate could not be read.\n") || !strings.Contains(got.errOut, refused) {
		t.Errorf("%+v", got)
	}
	for _, command := range []string{"preview production --from 2026-11-24T10:00:00Z --until 2026-11-24T11:00:00Z", "list --timeline"} {
		if got := half.gate(strings.Fields(command)...); got.code != 0 || got.errOut != "warning: exceptions are not included: "+refused || !strings.Contains(got.out, "opened") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	manifest := filepath.Join(t.TempDir(), "gate.yaml")
	w.Must(os.WriteFile(manifest, []byte("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: production}\nspec: {default: closed}\n"), 0o600))
	if got := half.gate("diff", "-f", manifest); got.code != 2 || got.out != "" || got.errOut != "error: "+refused {
		t.Errorf("diff: %+v", got)
	}
	for _, command := range []string{"preview production", "preview", "list --timeline"} {
		if got := stranger.gate(strings.Fields(command)...); got.code != 2 || got.out != "" || !strings.HasPrefix(got.errOut, "error: you may not ") || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := newWorld(t).gate("preview"); got.code != 0 || got.out != "" || !strings.HasPrefix(got.errOut, "There are no gates in namespace ") {
		t.Errorf("%+v", got)
	}
	if got := w.gate("preview", "prodution"); got.code != 2 || !strings.HasSuffix(got.errOut, "did you mean \"production\"?\n") {
		t.Errorf("%+v", got)
	}
}
