package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

func TestPreviewRefusesConflictingFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	for _, tc := range []struct{ args, want string }{
		{"-o json --state opened", "error: --state is for -o ics"},
		{"-o ics --state ajar", `error: unknown state "ajar", use opened or closed`},
		{"-f - -A", "error: -A, -l and --status-selector select gates of a cluster and cannot be combined with -f"},
		{"-f - -l a=b", "error: -A, -l and --status-selector select gates of a cluster and cannot be combined with -f"},
		{"gates.yaml", `error: "gates.yaml" is not the name of a gate; to read a file, use -f`},
		{"-f - --until 7d --days 7", "error: --until and --days exclude each other: use one of them\n"},
		{"-f - --days 0", "error: --days 0: use a number from 1 to 3660\n"},
		{"-f - --until 5000d", `error: --until "5000d": at most 3660 days are shown, until `},
		{"-f /no/such", "error: /no/such: no such file\n"},
		{"production -f -", "error: production: no such file; with -f, arguments are files\n"},
		{"production", "error: no cluster: "},
	} {
		var out, errOut bytes.Buffer
		code := run(append([]string{"preview"}, strings.Fields(tc.args)...), strings.NewReader(nights), &out, &errOut, now)
		if code != term.ExitError || out.Len() > 0 || !strings.HasPrefix(errOut.String(), tc.want) || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: exit %d: %s%s", tc.args, code, out.String(), errOut.String())
		}
	}
}

func TestEachPreviewFormatNamesGate(t *testing.T) {
	for format, want := range map[string]string{
		"": "flux-system/production   2026-11-21T22:00:00+01:00", "json": `"namespace": "flux-system"`, "yaml": "kind: GateTimelineList\n",
		"ics": "SUMMARY:production: opened (open period nights)\r\n", "svg": "<title>flux-system/production is opened from Sat 2026-11-21 22:00 CET until ",
	} {
		code, out, errOut := execute(t, nights, "-o", format, "--timezone", "Europe/Oslo")
		if code != 0 || errOut != "" || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d: %s%s", format, code, out, errOut)
		}
	}
}

func TestPreviewDefaultsToUTCAndEndsAfterDays(t *testing.T) {
	for args, want := range map[string]string{
		"--days 1":                                "2026-11-22T04:00:00Z   2026-11-22T12:00:00Z   closed",
		"--days 1 --timezone Europe/Oslo":         "2026-11-22T05:00:00+01:00   2026-11-22T13:00:00+01:00   closed",
		"--days 1 --timezone Europe/Oslo -o json": `"until": "2026-11-22T12:00:00Z"`,
	} {
		if code, out, errOut := execute(t, nights, strings.Fields(args)...); code != 0 || errOut != "" || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errOut)
		}
	}
}
