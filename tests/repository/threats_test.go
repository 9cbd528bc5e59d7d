package repository

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	aTest   = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	aPolicy = regexp.MustCompile(`(?m)^kind: (?:Validating|Mutating)AdmissionPolicy\nmetadata:\n  name: ([a-z-]+)$`)
	// somePolicies matches the policies that a row names.
	somePolicies = regexp.MustCompile("polic(?:y|ies) ((?:`[^`]+`(?:, )?)+)")
	quoted       = regexp.MustCompile("`([^`]+)`")
)

// all returns the matches of an expression in the files of the repository with an ending.
func all(t *testing.T, folder, ending string, what *regexp.Regexp) (found []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ending) {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range what.FindAllStringSubmatch(string(content), -1) {
			found = append(found, match[1])
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d in %s: %v", len(found), folder, err)
	}
	return found
}

// A reviewer must find the proof of each row, and the policies that prevent the attacks.
func TestThreatModelNamesExistingTestsAndPolicies(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "secure", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, policies := all(t, ".", "_test.go", aTest), all(t, "config", ".yaml", aPolicy)
	rows, proves := 0, false
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "|---") {
			proves = proves && strings.HasPrefix(line, "|---")
			continue
		}
		if cells[2] == "proof |" {
			proves = true
			continue
		}
		if !proves {
			continue
		}
		rows++
		if !strings.Contains(cells[2], "`Test") && !strings.Contains(cells[2], "](") {
			t.Errorf("no test proves %s", line)
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if !slices.Contains(tests, name[1]) {
				t.Errorf("the test %s does not exist", name[1])
			}
		}
		for _, named := range somePolicies.FindAllStringSubmatch(cells[1], -1) {
			for _, name := range quoted.FindAllStringSubmatch(named[1], -1) {
				if !slices.Contains(policies, name[1]) {
					t.Errorf("the policy %s does not exist", name[1])
				}
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}
