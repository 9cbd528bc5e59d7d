package repository

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestVersionsPageMatchesTestedVersions compares docs/reference/versions.md with the modules of the tools.
func TestVersionsPageMatchesTestedVersions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| (v[0-9.]+) \\| `([^`]+)` \\| `([^`]*go.mod)` \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 13 {
		t.Errorf("only %d versions on the page", len(rows))
	}
	for _, row := range rows {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(row[3])))
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(row[2]+" "+row[1]) + `(?:\s|$)`).Match(content) {
			t.Errorf("%s does not require %s %s", row[3], row[2], row[1])
		}
	}
}
