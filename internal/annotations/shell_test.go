package annotations_test

import (
	"os/exec"
	"testing"

	"github.com/fluxcd/gating-controller/internal/annotations"
)

func TestQuotedTextIsOneShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"main@sha1:2f5b9f5c": "main@sha1:2f5b9f5c", "release/v1.2,a+b%c:d_e-f@sha256:0": "release/v1.2,a+b%c:d_e-f@sha256:0", "": "''", "~": "'~'", "a=b": "'a=b'",
		"main;reboot@sha1:b": "'main;reboot@sha1:b'", "$(id)": "'$(id)'", "`id`": "'`id`'", "it's": `'it'\''s'`, `a"b\c`: `'a"b\c'`, "a b\n&|<>*?[]{}!#~": "'a b\n&|<>*?[]{}!#~'", "é": "'é'",
	} {
		got := annotations.ShellQuote(text)
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+got).Output(); err != nil || string(out) != text {
			t.Errorf("%q: the shell reads %q, %v", text, out, err)
		}
	}
}
