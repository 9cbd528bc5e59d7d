package cli

import (
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

func TestExceptionRefusesConflictingFlags(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"exception", "error: name a gate"},
		{"exception a b", "error: name a gate, not 2"},
		{"exception a", "error: --until or --for is required"},
		{"exception a --until 2h --for 2h", "error: --for and --until exclude each other: use one of them"},
		{"exception a --for 2h --open --close", "error: --open and --close exclude each other"},
		{"exception a --for 2h --default closed --open", "error: --open and --close need --period if there is a --default"},
		{"exception a --for 2h --default open", "error: --default=open: use closed or opened"},
		{"exception a --for 2h --dry-run=client", "error: --dry-run=client: use none or server"},
		{"exception a --for soon", `error: --for: "soon" is not a duration: write 30m, 1h30m, 3d or 2w`},
		{"exception a --from someday --until 2h", `error: --from "someday": cannot be read as a time: ` + term.TimeForms},
		{"exception a --from 2027-01-02 --until 2027-01-01", `error: --until "2027-01-01" is 2027-01-01 00:00 `},
		{"exception a --from 3h --until someday", `error: --until "someday": cannot be read as a time: ` + term.TimeForms},
		{"exception a --for 2h --timezone UTC --period 8-9", `error: [spec.openPeriods[0].start: Invalid value: "8"`},
		{"exception a --for 91d", "error: spec.validUntil: Invalid value"},
		{"exception a --for 2h --default closed --lead-time 1h", "error: spec.leadTime: Forbidden"},
		{"exception a --for 2h --close --lead-time x", `error: --lead-time: "x" is not a duration`},
		{"exception a --for 2h --period 08:00-09:00", "error: no cluster: "},
		{"exception a --for 2h --apply", "error: no cluster: "},
		{"approve", "error: name exception/NAME"},
		{"approve a --dry-run=client", "error: --dry-run=client: use none or server"},
	} {
		t.Setenv("KUBECONFIG", t.TempDir()+"/none")
		var out, errOut strings.Builder
		code := run(strings.Fields(tc.args), nil, &out, &errOut, now)
		lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
		if last := lines[len(lines)-1]; code != term.ExitError || !strings.HasPrefix(last, tc.want) || out.String() != "" {
			t.Errorf("%s: exit %d: %s%s, want %q", tc.args, code, out.String(), errOut.String(), tc.want)
		}
	}
}
