package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestEveryRowOfTheInterplayTablesIsATestAndEveryTestARow(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "interplay.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(content), -1) {
		rows = append(rows, row[1])
	}
	slices.Sort(rows)
	tests := slices.Sorted(maps.Keys(states))
	tests = slices.AppendSeq(tests, maps.Keys(downCases))
	for _, c := range []cases{gitCases, peopleCases, gateCases} {
		tests = slices.AppendSeq(tests, maps.Keys(c))
	}
	slices.Sort(tests)
	if !slices.Equal(rows, tests) {
		t.Errorf("rows %q\ntests %q", rows, tests)
	}
}
