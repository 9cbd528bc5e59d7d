package markdown

import (
	"slices"
	"testing"
)

const page = "# Title\n\n```sh\necho one\n```\n\n```text\none\n```\n\n1. In a list:\n\n   ```yaml\n   a:\n     b: c\n   ```\n\n```sh\necho two; false\n```\n\n" +
	"```sh\necho three\n```\n"

func TestBlocksAreInOrderWithoutIndentation(t *testing.T) {
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
