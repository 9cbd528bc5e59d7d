package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

func TestErrorsWithoutClusterHaveOneLine(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, tc := range []struct {
		args, out, errOut string
		code              int
	}{
		{"version", "WHAT     VERSION", "warning: no cluster: ", 0},
		{"version --client", "WHAT     VERSION", "", 0},
		{"check", "", "error: no cluster: ", term.ExitError},
		{"approve hotfix", "", "error: no cluster: ", term.ExitError},
		{"exception production --for 1h --apply", "", "error: no cluster: ", term.ExitError},
	} {
		var out, errOut strings.Builder
		code := run(strings.Fields(tc.args+" --server http://127.0.0.1:1"), nil, &out, &errOut, now)
		lines := strings.Count(errOut.String(), "\n")
		if code != tc.code || !strings.HasPrefix(out.String(), tc.out) || tc.out == "" && out.Len() > 0 || !strings.HasPrefix(errOut.String(), tc.errOut) ||
			tc.errOut == "" && lines > 0 || lines > 1 {
			t.Errorf("%s: exit %d: %s%s", tc.args, code, out.String(), errOut.String())
		}
	}
}
