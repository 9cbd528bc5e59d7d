package repository

import (
	"path/filepath"
	"testing"
)

// maxPageLines is what people read of a page. The pages of docs/reference may be longer: people look things up there.
const maxPageLines = 200

// generatedPage is made by make bench.
const generatedPage = "contribute/benchmarks.md"

func TestEachPageOfTheDocsIsShort(t *testing.T) {
	for _, page := range docsOf(t) {
		if filepath.Dir(page) == "reference" || page == generatedPage {
			continue
		}
		if n := len(linesOf(t, filepath.Join("docs", page))); n >= maxPageLines {
			t.Errorf("docs/%s has %d lines, and fewer than %d are read: split it, or move what is looked up into docs/reference", page, n, maxPageLines)
		}
	}
}
