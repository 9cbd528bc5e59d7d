// Package markdown reads the code blocks of pages, for the tests that run them.
package markdown

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Fence matches a code block: its indentation, its language and its text.
var Fence = regexp.MustCompile("(?ms)^( *)```([a-z]+)\n(.*?)^ *```")

// Block is a code block. Its text has no indentation, also in a list, and ends with a line break.
type Block struct{ Language, Text string }

// Blocks returns the code blocks of a text in order: those of some languages, or all if none is named.
func Blocks(text string, languages ...string) (blocks []Block) {
	for _, found := range Fence.FindAllStringSubmatch(text, -1) {
		if len(languages) == 0 || slices.Contains(languages, found[2]) {
			lines := strings.ReplaceAll("\n"+found[3], "\n"+found[1], "\n")
			blocks = append(blocks, Block{found[2], lines[1:]})
		}
	}
	return blocks
}

// Page returns the text of a page, given its path in the repository.
func Page(t testing.TB, path string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	content, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", path)) //nolint:gosec // a file of the repository
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// BlocksOf is Blocks of a page. The test fails if there are none.
func BlocksOf(t testing.TB, path string, languages ...string) []Block {
	t.Helper()
	blocks := Blocks(Page(t, path), languages...)
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %q", path, languages)
	}
	return blocks
}

// BlockOf returns the text of the first block of a page in a language that contains some words. The test fails if there is none.
func BlockOf(t testing.TB, path, language, words string) string {
	t.Helper()
	for _, b := range BlocksOf(t, path, language) {
		if strings.Contains(b.Text, words) {
			return b.Text
		}
	}
	t.Fatalf("%s has no block of %s with %q", path, language, words)
	return ""
}
