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

// The command below the file needs a cluster for the type alone.
func TestThePageOnExceptionsHasTheCommandThatWritesItsFile(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "exceptions.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n```yaml\n# exception.yaml\n(.*?)```.*?\nkubectl gate (except [^\n]*)\n").FindSubmatch(page)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	args := []string{"--type", "extend", "-n", "flux-system"}
	for _, word := range regexp.MustCompile(`"[^"]*"|[^ ]+`).FindAllString(string(found[2]), -1) {
		args = append(args, strings.Trim(word, `"`))
	}
	var out, errOut bytes.Buffer
	if code := run(append(args[4:], args[:4]...), nil, &out, &errOut, now); code != 0 || out.String() != string(found[1]) {
		t.Errorf("%q: exit %d: %s%s", args, code, out.String(), errOut.String())
	}
}
