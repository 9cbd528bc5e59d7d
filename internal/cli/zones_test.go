package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// asPlugin has the test binary be the plugin.
const asPlugin = "KUBECTL_GATE_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		os.Exit(Run(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, clock.RealClock{}))
	}
	os.Exit(m.Run())
}

func TestPreviewDoesNotReadTheZonesOfTheMachine(t *testing.T) {
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

func TestTheVersionNamesTheTimeZoneData(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run([]string{"--version"}, nil, &out, &errOut, now)
	if got := out.String(); code != 0 || !strings.HasPrefix(got, "kubectl-gate ") || !strings.HasSuffix(got, ", time zone data "+tz.Version()+"\n") {
		t.Errorf("exit %d: %s%s", code, got, errOut.String())
	}
}
