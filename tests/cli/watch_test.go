package cli

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestWatchPrintsRowPerChange(t *testing.T) {
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
			t.Fatalf("got line %q, want %q", lines.Text(), want)
		}
	}
	next("NAME STATE REASON NEXT (UTC) HELD REQUESTED BY")
	next("production closed close period freeze")
	next("staging opened default - 0/0 -")
	if got := w.gate("close", "staging"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	next("staging closed close request - 0/0 admin")
	if got := w.gate("reset", "staging"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	at := regexp.MustCompile(`^staging +closed +close request +\S+ \S+ \((in )?[0-9]+s( ago)?\) `)
	for lines.Scan() && !strings.Contains(lines.Text(), "opened   default") { // the request counts until the next second, which may be over when the row is printed
		if !at.MatchString(lines.Text()) {
			t.Fatalf("got line %q", lines.Text())
		}
	}
	w.Must(cmd.Process.Signal(os.Interrupt))
	for lines.Scan() {
		t.Errorf("got another line %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("watch ended with %v", err)
	}
}

// paced creates a closed Gate that holds two objects and releases them one after the other.
func (w *world) paced() {
	w.Helper()
	w.Create(w.Kustomization("one"))
	w.Create(w.Kustomization("two"))
	w.Gate("paced", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}},
		Release: &v1alpha1.ReleasePolicy{PerMinute: 6},
	})
	w.Decided(w.ReadGate("paced"))
}

func TestWatchWithWaitEndsOnceSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paced()
	w.expect(w.gate("open", "paced"), 0, "opened", "")
	w.expect(w.gate("list", "-w", "--wait", "--timeout=10ms"), exitTimeout, "paced", "error: after 10ms, 1 gates are not settled, such as "+w.Namespace+"/paced\n")
	w.expect(w.gate("list", "-w", "--wait"), 0, "0/2", "")
	w.expect(w.gate("list", "--wait"), exitError, "", "--wait needs --watch")
}
