package cli

import (
	"errors"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// approvalsPage runs docs/guides/approval-by-hand.md as the users on that page.
func approvalsPage(w *world) {
	w.Decided(w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed}))
	const path = "docs/guides/approval-by-hand.md"
	inHere := func(commands string) string {
		return strings.ReplaceAll(strings.ReplaceAll(commands, "flux-system", w.Namespace), "-k config/", "-k "+harness.Root()+"/config/")
	}
	commands := markdown.BlocksOf(w, path, "sh")
	if got := w.shell(inHere(commands[0].Text)); got.code != 0 {
		w.Fatalf("%+v", got)
	}
	w.Decided(w.ReadGate("production"))
	alice, bob, greta := w.as("alice", "devs"), w.as("bob", "sre"), w.as("greta", "oncall")
	blocks := markdown.BlocksOf(w, path, "console")
	if len(blocks) != 3 {
		w.Fatalf("the page has %d blocks", len(blocks))
	}
	shows := func(who *world, block string) {
		w.Helper()
		if got := who.transcript(block); docs.Stable(got) != docs.Stable(block) {
			w.Errorf("the commands print\n%s\nbut the page shows\n%s", got, block)
		}
	}
	shows(alice, blocks[0].Text)
	w.expect(bob.shell("kubectl-gate __complete approve '' 2>/dev/null"), 0, "production\n:4\n", "")
	w.expect(alice.gate("approve", "gate/production"), exitError, "", "error: you, alice, requested it: another user must approve it")
	w.expect(bob.gate("list"), 0, "default, 1 request to approve", "")
	w.expect(bob.gate("status", "production"), 0, "waits for 1 approval", "")
	shows(bob, blocks[1].Text)
	w.expect(bob.gate("approve", "gate/production"), exitError, "", "error: no open request waits for approval; for earlier requests: kubectl gate history production")
	w.expect(alice.gate("close", "production"), 0, "closed, close request", "")
	w.expect(alice.gate("reset", "production"), exitIncomplete, "withdrawing the close request of alice", "waits for 1 approval by others: kubectl gate approve gate/production -n "+w.Namespace)
	w.expect(bob.shell(inHere(commands[1].Text)), 0, "annotate", "")
	w.Eventually("the close is withdrawn", func() error {
		if got := w.gate("list"); !strings.Contains(got.out, " default ") {
			return errors.New(got.out)
		}
		return nil
	})

	w.expect(alice.gate("open", "production", "--emergency"), exitError, "", "error: --emergency needs a --reason")
	w.expect(alice.gate("open", "production", "--emergency", "--reason=x"), exitError, "", `you may not open gates in an emergency in namespace "`+w.Namespace+`": that needs the verb "emergency", which the ClusterRole gate-emergency-opener has`)
	shows(greta, blocks[2].Text)
}
