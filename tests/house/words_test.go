package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// banned are words that nobody says to a colleague.
var banned = regexp.MustCompile(`(?i)\b(anew|whatever|but for|of which|is told to|what waits has|in nobody's name)\b`)

// margin is what begins a line of a comment.
var margin = regexp.MustCompile(`\n\s*(//|#)?\s*`)

// TestPlainWords looks at all that is written by hand: code, comments, messages and docs.
func TestPlainWords(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "testdata", "zoneinfo"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Base(path) == "words_test.go" || !slices.Contains([]string{".go", ".md", ".yaml", ".sh"}, filepath.Ext(path)):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		text := margin.ReplaceAllString(string(content), " ")
		for _, at := range banned.FindAllStringIndex(text, -1) {
			t.Errorf("%s: say it without %q: ...%s...", strings.TrimPrefix(path, root), text[at[0]:at[1]], text[max(0, at[0]-40):min(len(text), at[1]+40)])
		}
		return nil
	})
	if err != nil || files < 400 {
		t.Errorf("%d files, %v", files, err)
	}
}
