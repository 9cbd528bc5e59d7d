package see

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

func TestFindingsAreColoredBySeverity(t *testing.T) {
	findings := []check.Finding{{Severity: check.Error, Object: "Gate a/b", Message: "it is\nwrong", Action: "kubectl gate status b"}, {Severity: check.Note, Object: "you", Message: "m"}}
	for color, want := range map[string]string{
		"always": "\x1b[31merror   \x1b[0m \x1b[1mGate a/b\x1b[0m: it is wrong\n         -> flux gate status b\n\x1b[2mnote    \x1b[0m \x1b[1myou\x1b[0m: m\n" +
			"\x1b[31mSome checks failed\x1b[0m: 1 error, 0 warnings, 1 note.\n",
		"never": "error    Gate a/b: it is wrong\n         -> flux gate status b\nnote     you: m\nSome checks failed: 1 error, 0 warnings, 1 note.\n",
	} {
		var out strings.Builder
		s := &kube.Factory{Terminal: &term.Terminal{IOStreams: genericiooptions.IOStreams{Out: &out}, Program: "flux gate", Color: color}}
		if err := printFindings(s.Terminal, term.NewOutput(&cobra.Command{}), findings, 0); err != nil || out.String() != want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", color, err, out.String(), want)
		}
	}
}

func TestUnreadInstallationsAreNotSound(t *testing.T) {
	wrong := []check.Finding{{Severity: check.Error}}
	for _, tc := range []struct {
		findings []check.Finding
		unread   int
		want     string
	}{
		{nil, 0, "\x1b[32mAll checks passed\x1b[0m: 0 errors, 0 warnings, 0 notes."},
		{nil, 1, "No errors in the resources that you may read; 1 check was skipped."},
		{nil, 4, "No errors in the resources that you may read; 4 checks were skipped."},
		{wrong, 4, "\x1b[31mSome checks failed\x1b[0m: 1 error, 0 warnings, 0 notes; 4 checks were skipped."},
	} {
		if got := summarize((&kube.Factory{Terminal: &term.Terminal{Color: "always"}}).Terminal, tc.findings, tc.unread); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
