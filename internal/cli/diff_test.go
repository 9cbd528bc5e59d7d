package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// sides writes the manifests before and after a change to two files, and returns their paths.
func sides(t *testing.T, before, after string) (old, changed string) {
	t.Helper()
	dir := t.TempDir()
	old, changed = filepath.Join(dir, "old.yaml"), filepath.Join(dir, "new.yaml")
	for path, content := range map[string]string{old: before, changed: after} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return old, changed
}

func TestDiffOfManifestsNeedsNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	old, changed := sides(t, nights, strings.Replace(nights, "22:00", "23:00", 1))
	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
	}{
		"a change": {[]string{"--old", old, "-f", changed}, term.ExitDiffers, `GATE                     FROM                   UNTIL                  BEFORE   AFTER    DECIDED BY
flux-system/production   2026-11-21T21:00:00Z   2026-11-21T22:00:00Z   opened   closed   outside open periods, was open period nights
`},
		"no change": {[]string{"--old", old, "-f", old}, 0, "No gate changes its state from 2026-11-21T12:00:00Z until 2026-11-22T12:00:00Z.\n"},
		"a gate that goes": {[]string{"--old", old, "-f", "-"}, term.ExitDiffers, `GATE                     FROM                   UNTIL                  BEFORE   AFTER     DECIDED BY
flux-system/production   2026-11-21T12:00:00Z   2026-11-22T12:00:00Z   gate     no gate   -
`},
		"a gate that comes": {[]string{"--old", "-", "-f", changed}, term.ExitDiffers, `GATE                     FROM                   UNTIL                  BEFORE    AFTER      DECIDED BY
flux-system/production   2026-11-21T12:00:00Z   2026-11-22T12:00:00Z   no gate   new gate   -
`},
	} {
		var out, errOut bytes.Buffer
		code := run(append([]string{"diff", "--days", "1"}, tc.args...), strings.NewReader(""), &out, &errOut, now)
		if code != tc.code || out.String() != tc.out || errOut.Len() > 0 {
			t.Errorf("%s: exit %d: %s\n%s", name, code, out.String(), errOut.String())
		}
	}
}

func TestDiffRefusesWrongArguments(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	old, broken := sides(t, nights, strings.Replace(nights, "Europe/Oslo", "Nowhere", 1))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no files":                 {nil, "error: no files: name them with -f"},
		"an unknown output":        {[]string{"-f", old, "-o", "svg"}, `error: unknown output "svg": omit it for a table, or use json, yaml or another format of kubectl`},
		"no days":                  {[]string{"-f", old, "--days", "0"}, "error: --days 0: use a number from 1 to 3660"},
		"a from that is none":      {[]string{"-f", old, "--from", "soon"}, `error: --from must be a time, and "soon" cannot be read as a time`},
		"prune without cluster":    {[]string{"-f", old, "--old", old, "--prune"}, "error: --prune cannot be combined with --old"},
		"labels without prune":     {[]string{"-f", old, "-l", "a=b"}, "error: --selector needs --prune"},
		"labels that are none":     {[]string{"-f", old, "--prune", "-l", "a b"}, "error: --selector: "},
		"a fault":                  {[]string{"--old", old, "-f", broken}, broken + ": flux-system/production: spec.timeZone: "},
		"a fault before":           {[]string{"--old", broken, "-f", old}, broken + ": flux-system/production: spec.timeZone: "},
		"a file that is none":      {[]string{"--old", old, "-f", "missing"}, "error: missing: no such file\n"},
		"an argument that is none": {[]string{"--old", old, "-f", old, "missing"}, "error: missing: no such file; with -f, arguments are files\n"},
		"until and days":           {[]string{"-f", old, "--until", "7d", "--days", "7"}, "error: --until and --days exclude each other: use one of them\n"},
		"no cluster":               {[]string{"-f", old}, "error: no cluster: "},
	} {
		var out, errOut bytes.Buffer
		code := run(append([]string{"diff"}, tc.args...), strings.NewReader(""), &out, &errOut, now)
		if code != term.ExitError || out.Len() > 0 || !strings.HasPrefix(errOut.String(), tc.want) || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: exit %d: %s%s", name, code, out.String(), errOut.String())
		}
	}
}

func TestDiffUsesNamedZoneAndEnd(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	old, changed := sides(t, nights, strings.Replace(nights, "22:00", "23:00", 1))
	for line, want := range map[string]string{
		"-f " + changed + " --until 1d --timezone Europe/Oslo": "2026-11-21T22:00:00+01:00   2026-11-21T23:00:00+01:00   opened   closed",
		"-f " + old + " --until 1d --timezone Europe/Oslo":     "No gate changes its state from 2026-11-21T13:00:00+01:00 until 2026-11-22T13:00:00+01:00.",
		"-f " + changed + " --until 1d":                        "2026-11-21T21:00:00Z   2026-11-21T22:00:00Z   opened   closed",
		"-f " + changed + " --timezone Europe/Oslo -o json":    `"from": "2026-11-21T21:00:00Z"`,
	} {
		var out, errOut bytes.Buffer
		if run(append([]string{"diff", "--old", old}, strings.Fields(line)...), strings.NewReader(""), &out, &errOut, now); !strings.Contains(out.String(), want) || errOut.Len() > 0 {
			t.Errorf("%s: %s%s", line, out.String(), errOut.String())
		}
	}
}

func TestFilesWithoutGatesAreReported(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	const none = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	one, other := sides(t, none, none)
	for line, want := range map[string]string{
		"diff --old " + one + " -f " + other: "warning: There are no gates in these files.\n",
		"preview -f " + one:                  "There are no gates in these files.\n",
	} {
		var out, errOut bytes.Buffer
		if code := run(strings.Fields(line), strings.NewReader(""), &out, &errOut, now); code != 0 || errOut.String() != want || strings.Contains(out.String(), "GATE") {
			t.Errorf("%s: exit %d: %s%s", line, code, out.String(), errOut.String())
		}
	}
}
