package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePageOnExceptionsShowsWhatPreviewPrints runs the commands of
// docs/exceptions.md on its manifests, whose first line is the name of a file.
func TestThePageOnExceptionsShowsWhatPreviewPrints(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "exceptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, manifest := range regexp.MustCompile("(?s)```yaml\n# ([a-z-]+\\.yaml)\n(.*?)```").FindAllSubmatch(page, -1) {
		if err := os.WriteFile(string(manifest[1]), manifest[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shown := regexp.MustCompile("(?s)\nkubectl gate ((?:preview|diff) [^\n]*)\n```\n\n```(?:console|json)\n(.*?)```").FindAllSubmatch(page, -1)
	if len(shown) < 3 {
		t.Fatalf("%d previews and diffs on the page", len(shown))
	}
	for _, s := range shown {
		var out, errOut bytes.Buffer
		code := run(strings.Fields(string(s[1])), nil, &out, &errOut, now)
		want := 0
		if strings.HasPrefix(string(s[1]), "diff ") {
			want = exitDiffers
		}
		if code != want || errOut.Len() > 0 || out.String() != string(s[2]) {
			t.Errorf("%s: exit %d: %s\nprints: %s\npage: %s", s[1], code, errOut.String(), out.String(), s[2])
		}
	}
}
