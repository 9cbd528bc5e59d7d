package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/tz"
)

func TestGuidesShowOutputOfPreviewAndDiff(t *testing.T) {
	for page, atLeast := range map[string]int{
		"guides/certificates.md": 1, "guides/company-freeze.md": 1, "guides/exceptions.md": 2, "guides/from-flux-suspend.md": 1, "guides/hotfix-in-a-freeze.md": 1, "guides/nights-and-weekends.md": 1,
	} {
		t.Run(page, func(t *testing.T) { showsWhatPreviewPrints(t, page, atLeast) })
	}
}

// lineEnds matches the blanks at the ends of lines, from empty cells in the last column.
var lineEnds = regexp.MustCompile(`(?m) +$`)

func TestFirstGatePageShowsPreviewOutput(t *testing.T) {
	showsWhatPreviewPrints(t, "start/first-gate.md", 1)
}

// showsWhatPreviewPrints runs the commands of a page on its manifests. The first line of a manifest is the name of its file.
func showsWhatPreviewPrints(t *testing.T, name string, atLeast int) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, manifest := range regexp.MustCompile("(?s)```yaml\n# ([a-z-]+\\.yaml)\n(.*?)```").FindAllSubmatch(page, -1) {
		if err := os.WriteFile(string(manifest[1]), manifest[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shown := regexp.MustCompile("(?s)\nkubectl gate ((?:preview|diff) [^\n]*)\n```\n\n```console\n(.*?)```").FindAllSubmatch(page, -1)
	if len(shown) < atLeast {
		t.Fatalf("%d previews and diffs on the page", len(shown))
	}
	for _, s := range shown {
		var out, errOut bytes.Buffer
		code := run(strings.Fields(string(s[1])), nil, &out, &errOut, now)
		want := 0
		if strings.HasPrefix(string(s[1]), "diff ") {
			want = term.ExitDiffers
		}
		if code != want || errOut.Len() > 0 || lineEnds.ReplaceAllString(out.String(), "") != lineEnds.ReplaceAllString(string(s[2]), "") {
			t.Errorf("%s: exit %d: %s\nprints: %s\npage: %s", s[1], code, errOut.String(), out.String(), s[2])
		}
	}
}

func TestStabilityPageNamesReportVersion(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "stability.md"))
	if err != nil || !bytes.Contains(page, []byte("`"+term.ReportsVersion+"`")) {
		t.Errorf("it does not name %s, %v", term.ReportsVersion, err)
	}
}

// The command on the page prints the file below it, without a cluster.
func TestHotfixPageHasCommandThatWritesItsFile(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "hotfix-in-a-freeze.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\nkubectl gate (exception [^\n]*)\n```\n\n```yaml\n# exception.yaml\n(.*?)```").FindSubmatch(page)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	args := []string{"-n", "flux-system"}
	for _, word := range regexp.MustCompile(`"[^"]*"|[^ ]+`).FindAllString(string(found[1]), -1) {
		args = append(args, strings.Trim(word, `"`))
	}
	var out, errOut bytes.Buffer
	if code := run(append(args[2:], args[:2]...), nil, &out, &errOut, now); code != 0 || out.String() != string(found[2]) {
		t.Errorf("%q: exit %d: %s%s", args, code, out.String(), errOut.String())
	}
}

// The windows on the page on certificates are at most 29 days apart. The example on the page on Gates has the first Sunday of each month.
func TestDocumentedSundays(t *testing.T) {
	oslo, err := tz.Load("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	for page, firsts := range map[string][]int{"guides/certificates.md": {1, 15}, "reference/gates.md": {1}} {
		content, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		windows := regexp.MustCompile(`(?m)^  openPeriods:\n(  [- ] .*\n)*?    weeksOfMonth: .*\n(    .*\n)*`).FindString(string(content))
		manifest, _, _ := strings.Cut(nights, "  openPeriods:")
		code, out, errOut := execute(t, manifest+windows, "-o", "json", "--from", "2026-01-01T00:00:00+01:00", "--until", "2035-12-31T00:00:00+01:00")
		if code != 0 || errOut != "" {
			t.Fatalf("%s: exit %d: %s", page, code, errOut)
		}
		var starts []time.Time
		apart := time.Duration(0)
		for _, i := range timelinesIn(t, out)[0].Intervals {
			if i.State != "opened" {
				continue
			}
			start := i.From.In(oslo)
			if start.Weekday() != time.Sunday || start.Hour() != 2 || !slices.Contains(firsts, (start.Day()-1)/7*7+1) {
				t.Errorf("%s: it opens at %s", page, start)
			}
			if len(starts) > 0 {
				apart = max(apart, start.Sub(starts[len(starts)-1]))
			}
			starts = append(starts, start)
		}
		if want := 120 * len(firsts); len(starts) != want {
			t.Errorf("%s: %d windows in ten years, want %d", page, len(starts), want)
		}
		if enough := apart <= 29*24*time.Hour; enough != (page == "guides/certificates.md") {
			t.Errorf("%s: windows are up to %s apart", page, apart)
		}
	}
}
