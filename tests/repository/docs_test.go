package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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

func TestDocsIndexListsAllPages(t *testing.T) {
	home := pagesOf(t)["docs/README.md"]
	for _, page := range docsOf(t) {
		if !strings.Contains(home, "("+page+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}
