package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/plan"
	"github.com/fluxcd/gating-controller/internal/cli/see"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/cli/term/termtest"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// timelinesIn returns the items in the output of preview -o json.
func timelinesIn(t *testing.T, out string) []plan.GateTimeline {
	t.Helper()
	return termtest.DecodeItems[plan.GateTimeline](t, out, "GateTimeline")
}

func TestVersionReportIsList(t *testing.T) {
	var out bytes.Buffer
	code := run([]string{"version", "--client", "-o", "json"}, nil, &out, &out, now)
	if items := termtest.DecodeItems[see.Versions](t, out.String(), term.VersionReport); code != 0 || len(items) != 1 || items[0].Client.TimeZoneData != tz.Version() {
		t.Errorf("exit %d: %+v", code, items)
	}
}

func TestCLIPageListsKindOfEachReport(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "cli.md"))
	if err != nil || !strings.Contains(string(page), Reports()) {
		t.Errorf("%v: run make generate, the page lacks\n%s", err, Reports())
	}
	for _, cmd := range Command().Commands() {
		writes := cmd.Name() == "exception" || cmd.Name() == "approve" // these print the object that they write
		listed := slices.ContainsFunc(reports, func(r struct{ command, kind, text string }) bool { return strings.Fields(r.command)[0] == cmd.Name() })
		if has := cmd.Flags().Lookup("output") != nil; has && !writes != listed {
			t.Errorf("%s: in the table %t", cmd.Name(), listed)
		}
	}
}

func TestReportHasNoName(t *testing.T) {
	code, out, errOut := execute(t, nights, "-o", "name")
	if want := "error: -o name: a report has no name, use json\n"; code != term.ExitError || out != "" || errOut != want {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}
