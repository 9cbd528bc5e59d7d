package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxcd/gating-controller/internal/check"
)

func TestFindingsAreInColorsByHowBadTheyAre(t *testing.T) {
	findings := []check.Finding{{Severity: check.Error, Object: "Gate a/b", Message: "it is\nwrong", Action: "kubectl gate status b"}, {Severity: check.Note, Object: "you", Message: "m"}}
	for color, want := range map[string]string{
		"always": "\x1b[31merror   \x1b[0m \x1b[1mGate a/b\x1b[0m: it is wrong\n         -> flux gate status b\n\x1b[2mnote    \x1b[0m \x1b[1myou\x1b[0m: m\n" +
			"\x1b[31mThe installation is not sound\x1b[0m: 1 error, 0 warnings, 1 note.\n",
		"never": "error    Gate a/b: it is wrong\n         -> flux gate status b\nnote     you: m\nThe installation is not sound: 1 error, 0 warnings, 1 note.\n",
	} {
		var out strings.Builder
		s := &session{terminal: &terminal{IOStreams: genericiooptions.IOStreams{Out: &out}, name: "flux gate", color: color}}
		if err := printFindings(s.terminal, newOutput(&cobra.Command{}), findings, 0); err != nil || out.String() != want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", color, err, out.String(), want)
		}
	}
}

func TestNobodyCallsSoundWhatWasNotRead(t *testing.T) {
	wrong := []check.Finding{{Severity: check.Error}}
	for _, tc := range []struct {
		findings []check.Finding
		unread   int
		want     string
	}{
		{nil, 0, "\x1b[32mThe installation is sound\x1b[0m: 0 errors, 0 warnings, 0 notes."},
		{nil, 1, "No error in what you may see; 1 thing was not checked."},
		{nil, 4, "No error in what you may see; 4 things were not checked."},
		{wrong, 4, "\x1b[31mThe installation is not sound\x1b[0m: 1 error, 0 warnings, 0 notes; 4 things were not checked."},
	} {
		if got := summarize((&session{terminal: &terminal{color: "always"}}).terminal, tc.findings, tc.unread); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
