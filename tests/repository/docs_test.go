package repository

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sections are the headings of docs/README.md in their order, each with the folder whose pages it lists.
var sections = [][2]string{
	{"Start", "start"}, {"Guides", "guides"}, {"Operate", "operate"}, {"Secure", "secure"}, {"Reference", "reference"},
	{"Compare and migrate", "compare"}, {"Contribute", "contribute"},
}

// entry is a line of docs/README.md that lists a page.
var entry = regexp.MustCompile(`^- \[[^\]]+\]\(([a-z0-9/-]+\.md)\): .+$`)

// docsOf returns the pages of the docs, such as start/install.md, without the home page.
func docsOf(t *testing.T) (docs []string) {
	t.Helper()
	for path := range pagesOf(t) {
		if page, isDoc := strings.CutPrefix(path, "docs/"); isDoc && page != "README.md" {
			docs = append(docs, page)
		}
	}
	return docs
}

// linesOf returns the lines of a file of the repository.
func linesOf(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

func TestTheHomeOfTheDocsListsEachPageOnceInItsSection(t *testing.T) {
	last, listed := -1, []string{}
	for _, line := range linesOf(t, "docs/README.md") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			at := slices.IndexFunc(sections, func(s [2]string) bool { return s[0] == heading })
			if at <= last {
				t.Errorf("the section %q is unknown, or in the wrong place", heading)
			}
			last = at
		}
		if !strings.HasPrefix(line, "- ") || strings.Contains(line, "](../") { // what is not part of docs
			continue
		}
		found := entry.FindStringSubmatch(line)
		if found == nil {
			t.Errorf("this is no link with a colon and a few words: %s", line)
			continue
		}
		if listed = append(listed, found[1]); last < 0 || filepath.Dir(found[1]) != sections[last][1] {
			t.Errorf("%s is in the wrong section", found[1])
		}
	}
	pages := docsOf(t)
	for _, page := range pages {
		if n := len(slices.DeleteFunc(slices.Clone(listed), func(other string) bool { return other != page })); n != 1 {
			t.Errorf("docs/README.md lists %s %d times", page, n)
		}
	}
	for _, page := range listed {
		if !slices.Contains(pages, page) {
			t.Errorf("docs/README.md lists %s, which does not exist", page)
		}
	}
}

func TestTheReadmeIsReadInTwoMinutes(t *testing.T) {
	if n := len(linesOf(t, "README.md")); n > 120 {
		t.Errorf("it has %d lines, at most 120 are read: move some of it into docs", n)
	}
}
