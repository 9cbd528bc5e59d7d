package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

func TestPreviewRefusesExpensiveLead(t *testing.T) {
	periods := ""
	for i := range 100 {
		periods += fmt.Sprintf("  - {name: p%d, schedule: '*/2 * * * *', duration: 1m}\n", i)
	}
	content := "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: busy}\nspec:\n  default: closed\n  openPeriods:\n" + periods +
		"---\napiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateException\nmetadata: {name: x}\nspec:\n  gateRef: {name: busy}\n  timeZone: UTC\n" +
		"  leadTime: 1h\n  validFrom: '2026-11-01T00:00:00Z'\n  validUntil: '2027-01-01T00:00:00Z'\n  closePeriods:\n" + periods
	file := filepath.Join(t.TempDir(), "busy.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := run([]string{"preview", "-f", file, "--from", "2026-11-24T00:00:00Z", "--until", "2026-11-24T01:00:00Z"}, nil, &out, &errOut, time.Time{})
	want := file + ": default/x: spec.leadTime: Invalid value: \"1h0m0s\": is refused, because the gate "
	if code != term.ExitError || out.Len() > 0 || !strings.HasPrefix(errOut.String(), want) || strings.Count(errOut.String(), "\n") != 1 {
		t.Errorf("exit %d, %q, %q", code, out.String(), errOut.String())
	}
}
