package cli

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// inTerminal runs kubectl gate in a pseudo-terminal and returns what the terminal shows.
func (w *world) inTerminal(env []string, args ...string) string {
	w.Helper()
	return w.inTerminalOf(120, env, args...)
}

// inTerminalOf runs kubectl gate in a pseudo-terminal with a number of columns.
func (w *world) inTerminalOf(columns uint16, env []string, args ...string) string {
	w.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	w.Must(err)
	defer master.Close() //nolint:errcheck // nothing is written
	w.Must(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	w.Must(err)
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	w.Must(err)
	w.Must(unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}))
	cmd := exec.CommandContext(w.Context(), program(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "TZ=UTC", "TERM=xterm", "NO_COLOR=", "HOME="+cluster.Dir()), env...)
	w.Must(cmd.Start())
	_ = slave.Close()
	shown, _ := io.ReadAll(master) // reading ends with an error when the last process has closed the terminal
	_ = cmd.Wait()
	return string(shown)
}

func TestColorsInTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	const green = "\x1b[32mopened\x1b[0m"
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want bool
	}{
		"by default":      {nil, nil, true},
		"NO_COLOR":        {[]string{"NO_COLOR=1"}, nil, false},
		"a dumb terminal": {[]string{"TERM=dumb"}, nil, false},
		"never":           {nil, []string{"--color=never"}, false},
		"always":          {[]string{"NO_COLOR=1"}, []string{"--color=always"}, true},
		"a wrong value":   {nil, []string{"--color=blue"}, false},
	} {
		shown := w.inTerminal(tc.env, append([]string{"list"}, tc.args...)...)
		if strings.Contains(shown, green) != tc.want || strings.Contains(shown, "\x1b[") != tc.want {
			t.Errorf("%s: %q", name, shown)
		}
	}
	if got := w.gate("list"); strings.Contains(got.out, "\x1b[") {
		t.Errorf("a pipe has colors: %q", got.out)
	}
	if got := w.gate("list", "--color=always"); !strings.Contains(got.out, green) {
		t.Errorf("a pipe has no colors, but they were requested: %q", got.out)
	}
	if got := w.gate("list", "--color=blue"); got.code != 2 || !strings.Contains(got.errOut, "--color=blue") {
		t.Errorf("%+v", got)
	}
}

func TestWaitShowsProgressInTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paced()
	shown := w.inTerminal(nil, "open", "paced", "--wait")
	if !strings.Contains(shown, "1/2 targets") || !strings.Contains(shown, "done, 0 of 2 targets held") {
		t.Errorf("%q", shown)
	}
	if got := w.gate("close", "paced", "--wait"); got.code != 0 || strings.Contains(got.out+got.errOut, "[#") {
		t.Errorf("a pipe shows a progress bar: %+v", got)
	}
}

func TestWaitTimesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Decided(w.ReadGate("staging"))
	got := w.gate("close", "staging", "--at", "in 1h", "--wait", "--timeout", "1s")
	if got.code != 124 || !strings.Contains(got.errOut, "after 1s, the request has not begun, it is planned for") {
		t.Errorf("%+v", got)
	}
}
