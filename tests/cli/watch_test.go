package cli

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestWatchPrintsARowWhenAGateChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	cmd := exec.CommandContext(w.Context(), program(), "list", "-w")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "TZ=UTC", "HOME="+cluster.Dir())
	out, err := cmd.StdoutPipe()
	w.Must(err)
	w.Must(cmd.Start())
	lines := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(strings.Join(strings.Fields(lines.Text()), " "), want) {
			t.Fatalf("it prints %q, want %q", lines.Text(), want)
		}
	}
	next("NAME STATE WHY UNTIL (UTC) HELD ASKED BY")
	next("production closed close period freeze")
	next("staging opened default - 0/0 -")
	if got := w.gate("close", "staging"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	next("staging closed close request - 0/0 admin")
	if got := w.gate("reset", "staging"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for lines.Scan() && !strings.Contains(lines.Text(), "opened   default") { // it may say that the request counts until the next second
		if !strings.Contains(lines.Text(), "(in 0s)") {
			t.Fatalf("it prints %q", lines.Text())
		}
	}
	w.Must(cmd.Process.Signal(os.Interrupt))
	for lines.Scan() {
		t.Errorf("it also prints %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
