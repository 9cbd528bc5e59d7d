package markdown

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const page = "# Title\n\n```sh\necho one\n```\n\n```text\none\n```\n\n1. In a list:\n\n   ```yaml\n   a:\n     b: c\n   ```\n\n```sh\necho two; false\n```\n\n" +
	"```sh\necho three\n```\n"

func TestTheBlocksOfAPageAreInOrderAndWithoutIndentation(t *testing.T) {
	all := []Block{{"sh", "echo one\n"}, {"text", "one\n"}, {"yaml", "a:\n  b: c\n"}, {"sh", "echo two; false\n"}, {"sh", "echo three\n"}}
	for _, c := range []struct {
		languages []string
		want      []Block
	}{
		{nil, all},
		{[]string{"text", "yaml"}, all[1:3]},
		{[]string{"json"}, nil},
	} {
		if got := Blocks(page, c.languages...); !slices.Equal(got, c.want) {
			t.Errorf("of %q: got %q, want %q", c.languages, got, c.want)
		}
	}
}

func TestAScriptEndsAtWhatFailsAndAtWhatPrintsSomethingElse(t *testing.T) {
	blocks := Blocks(page)
	other := slices.Clone(blocks)
	other[1].Text = "another\n"
	for name, c := range map[string]struct {
		blocks   []Block
		fails    bool
		prints   []string
		conceals string
	}{
		"all is well":          {slices.Delete(slices.Clone(blocks), 3, 4), false, []string{"one\nthree\n"}, ""},
		"a command fails":      {blocks, true, []string{"one\ntwo\n"}, "three"},
		"another text is here": {other, true, []string{"< another\n", "> one\n"}, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			script, ran, compared := Script(c.blocks)
			if compared != 1 || ran != len(Blocks(page, "sh"))-len(blocks)+len(c.blocks) {
				t.Errorf("%d blocks of commands, %d compared", ran, compared)
			}
			out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
			if (err != nil) != c.fails || c.conceals != "" && strings.Contains(string(out), c.conceals) {
				t.Errorf("%v: %s", err, out)
			}
			for _, want := range c.prints {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is not in %s", want, out)
				}
			}
		})
	}
}
