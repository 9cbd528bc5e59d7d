package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// requested returns a world in which a user has opened staging and closed it again.
func requested(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
	w.Decided(w.ReadGate("staging"))
	for _, args := range [][]string{{"open", "staging", "--for", "1h", "--reason", "hotfix, 1234"}, {"reset", "staging"}} {
		if got := w.gate(args...); got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	return w
}

func TestHistoryFormats(t *testing.T) {
	t.Parallel()
	w := requested(t)
	var list struct {
		APIVersion, Kind string
		Items            []map[string]any
	}
	got := w.gate("history", "-o", "json")
	w.Must(json.Unmarshal([]byte(got.out), &list))
	if list.Kind != "GateHistoryEntryList" || list.APIVersion != "cli.gating.toolkit.fluxcd.io/v1alpha1" || len(list.Items) != 4 {
		t.Fatalf("%+v", list)
	}
	opened := list.Items[2]
	if about := opened["metadata"].(map[string]any); about["namespace"] != w.Namespace || about["name"] != "staging" {
		t.Errorf("%v", about)
	}
	for key, want := range map[string]any{
		"kind": "GateHistoryEntry", "state": "opened", "reason": "OpenRequested",
		"action": "open", "requestedBy": "admin", "message": "hotfix, 1234",
	} {
		if opened[key] != want {
			t.Errorf("%s is %v, want %v", key, opened[key], want)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(w.gate("history", "-o", "csv").out)).ReadAll()
	if err != nil || len(rows) != 5 || rows[0][0] != "at" || rows[3][3] != "opened" || rows[3][11] != "hotfix, 1234" {
		t.Errorf("%v: %v", err, rows)
	}
	w.Gate("suspended", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Suspend: true})
	if got := w.gate("history", "suspended"); got.out != "" || !strings.Contains(got.errOut, "There is no history.") {
		t.Errorf("%+v", got)
	}
	if got := w.gate("history", "--since", "2199-01-01T00:00:00Z"); got.code == 0 || !strings.Contains(got.errOut, `--since "2199-01-01T00:00:00Z" is in the future`) {
		t.Errorf("%+v", got)
	}
}

func TestCSVEscapesFormulas(t *testing.T) {
	t.Parallel()
	w := requested(t)
	w.expect(w.gate("close", "staging", "--reason", "=1+1"), 0, "closed", "")
	rows, err := csv.NewReader(strings.NewReader(w.gate("history", "-o", "csv").out)).ReadAll()
	if err != nil || rows[1][11] != "'=1+1" {
		t.Errorf("%v: %v", err, rows)
	}
}

// As the page promises, the log keeps entries that are no longer in the status.
func TestLogHasHistory(t *testing.T) {
	t.Parallel()
	w := requested(t)
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "operate", "audit.md"))
	w.Must(err)
	_, filter, ok := strings.Cut(string(page), "kubectl -n gating-system logs deployment/gating-controller | ")
	filter, _, _ = strings.Cut(filter, "\n")
	if !ok {
		t.Fatal("the page shows no command")
	}
	want := []string{
		"closed|Default||", "open|RequestAccepted|admin|hotfix, 1234", "opened|OpenRequested|admin|hotfix, 1234", "close|RequestWithdrawn|admin|", "closed|Default||",
	}
	w.Eventually("the log has all entries (they are written after the status)", func() error {
		cmd := exec.CommandContext(w.Context(), "bash", "-o", "pipefail", "-c", filter)
		log, err := os.Open(gating.Log)
		w.Must(err)
		defer log.Close() //nolint:errcheck // the file was opened only for reading
		cmd.Stdin = log
		lines, err := cmd.Output()
		w.Must(err)
		var kept []string
		for line := range strings.Lines(string(lines)) {
			var entry struct{ Namespace, Name, State, Action, Reason, RequestedBy, RequestMessage string }
			w.Must(json.Unmarshal([]byte(line), &entry))
			if entry.Namespace == w.Namespace && entry.Name == "staging" {
				kept = append(kept, strings.Join([]string{entry.State + entry.Action, entry.Reason, entry.RequestedBy, entry.RequestMessage}, "|"))
			}
		}
		if !slices.Equal(kept, want) {
			return fmt.Errorf("the log has\n%s\nwant\n%s", strings.Join(kept, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}
