package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// asPlugin is the environment variable with which the test binary runs as the plugin.
const asPlugin = "KUBECTL_GATE_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		os.Exit(Run(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, clock.RealClock{}))
	}
	os.Exit(m.Run())
}

func TestPreviewDoesNotReadHostTimeZones(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gates.yaml")
	if err := os.WriteFile(file, []byte(nights), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"preview", "-f", file, "-o", "json", "--from", "2026-10-24T12:00:00Z", "--until", "2026-10-26T12:00:00Z"}
	var want, errOut bytes.Buffer
	if code := run(args, nil, &want, &errOut, now); code != 0 || !strings.Contains(want.String(), `"2026-10-24T20:00:00Z"`) {
		t.Fatalf("exit %d: %s%s", code, want.String(), errOut.String())
	}
	for name, on := range tztest.Machines(t) {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], args...)
			c.Env = append(os.Environ(), asPlugin+"=yes")
			on(c)
			if got, err := c.CombinedOutput(); err != nil || string(got) != want.String() {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, want.String())
			}
		})
	}
}

// openFrom returns when the Gate in nights opens on 2026-11-20, and the standard error and exit code of preview.
func openFrom(t *testing.T, args ...string) (from, errOut string, code int) {
	t.Helper()
	code, out, errOut := execute(t, nights, append(args, "--from", "2026-11-20T06:00:00Z", "--until", "2026-11-21T00:00:00Z")...)
	if found := regexp.MustCompile(`(\S+) +\S+ +opened`).FindAllStringSubmatch(out, -1); found != nil {
		from = found[len(found)-1][1]
	}
	return from, errOut, code
}

func TestOtherTimeZoneData(t *testing.T) {
	t.Cleanup(func() { _ = tz.Use("") })
	file, bad := filepath.Join(t.TempDir(), "zoneinfo.zip"), t.TempDir()
	if err := tztest.Moved(file); err != nil {
		t.Fatal(err)
	}
	const builtIn, moved = "2026-11-20T21:00:00Z", "2026-11-20T13:00:00Z"
	for _, tc := range []struct {
		name, flag, variable, from, errOut string
		code                               int
	}{
		{"none", "", "", builtIn, "", 0},
		{"of the flag", file, "", moved, "", 0},
		{"of the variable", "", file, moved, "", 0},
		{"of the flag before the variable", file, bad, moved, "", 0},
		{"bad data of the flag", bad, "", "", "error: --zoneinfo: " + bad + ": lacks 598 of the 598 time zones", term.ExitError},
		{"bad data of the variable", "", bad, "", "error: GATE_ZONEINFO: " + bad + ": lacks 598 of the 598 time zones", term.ExitError},
		{"none again", "", "", builtIn, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("GATE_ZONEINFO", tc.variable)
			var args []string
			if tc.flag != "" {
				args = []string{"--zoneinfo", tc.flag}
			}
			from, errOut, code := openFrom(t, args...)
			if from != tc.from || code != tc.code || !strings.HasPrefix(errOut, tc.errOut) || tc.errOut == "" && errOut != "" || strings.Count(errOut, "\n") > 1 {
				t.Errorf("exit %d, open from %s: %s", code, from, errOut)
			}
		})
	}
}

func TestTimeZonePageCommandPacksData(t *testing.T) {
	if _, err := exec.LookPath("zip"); err != nil {
		t.Skip("there is no zip here")
	}
	page := markdown.Page(t, "docs/operate/time-zone-data.md")
	commands := markdown.Blocks(page, "sh")
	dir := t.TempDir()
	if err := tztest.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	// The script replaces "kubectl gate" by the test binary, and the folder of the machine by another one.
	script := "kubectl() { shift; " + asPlugin + "=yes " + os.Args[0] + " \"$@\"; }\n" + strings.ReplaceAll(commands[0].Text+commands[1].Text, "/usr/share/zoneinfo", dir)
	out, err := exec.CommandContext(t.Context(), "bash", "-euc", script).CombinedOutput()
	if err != nil || strings.Count(string(out), "time zone data "+tz.Version()+"\n") != 2 {
		t.Errorf("%v: %s", err, out)
	}
	if info, err := os.Stat("zoneinfo.zip"); err != nil || info.Size() > 1<<20 {
		t.Errorf("a ConfigMap holds 1 MiB: %+v, %v", info, err)
	}
}

func TestVersionNamesTimeZoneData(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run([]string{"--version"}, nil, &out, &errOut, now)
	if got := out.String(); code != 0 || !strings.HasPrefix(got, "kubectl-gate ") || !strings.HasSuffix(got, ", time zone data "+tz.Version()+"\n") {
		t.Errorf("exit %d: %s%s", code, got, errOut.String())
	}
}
