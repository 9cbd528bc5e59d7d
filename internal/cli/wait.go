package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// waitForTargets waits until all Gates are as they were asked to be, and their targets as well. It shows how far they are.
func waitForTargets(ctx context.Context, t *terminal, c *cluster, timeout time.Duration, results []result) error {
	bar := &progressBar{t: t}
	defer bar.clear()
	deadline := t.clock.Now().Add(timeout)
	for {
		left, sum, total := 0, int64(0), int64(0)
		for i := range results {
			r := &results[i]
			if r.request == nil || r.err != nil {
				continue
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(r.gate), r.gate); err != nil {
				return newCall("get", "gates", r.gate.Namespace, r.gate.Name, "gate-viewer").explain(err)
			}
			done, of, settled := progressOf(r.gate, r.request, t.clock.Now())
			sum, total = sum+done, total+of
			if !settled {
				left++
			}
		}
		if left == 0 {
			break
		}
		bar.show(sum, total)
		if t.clock.Now().After(deadline) {
			bar.clear()
			fmt.Fprintf(t.ErrOut, "error: after %s, %s; it goes on without you\n", timeout, unsettled(results, sum, total, t.clock.Now()))
			return exitCode(exitTimeout)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.clock.After(waitPoll):
		}
	}
	bar.clear()
	return printSettled(t, results)
}

// unsettled says how far some Gates are.
func unsettled(results []result, sum, total int64, now time.Time) string {
	for _, r := range results {
		if r.request != nil && r.err == nil && r.request.planned && now.Before(r.request.at) {
			return fmt.Sprintf("the request has not begun, it is planned for %s", formatTime(r.request.at))
		}
	}
	return fmt.Sprintf("%d of %d targets are as the gates want them", sum, total)
}

// progressOf returns how many targets of a Gate are as it wants them, of how many, and whether that is all that a request has asked for.
func progressOf(g *v1alpha1.Gate, r *request, now time.Time) (done, total int64, settled bool) {
	counts := g.Status.Targets
	if counts == nil {
		return 0, 0, false
	}
	total = counts.Total
	done = total - counts.Held - counts.Pending
	if stateOf(g) == string(v1alpha1.StateClosed) {
		done = total - counts.Pending
	}
	return max(0, done), total, isSettled(g) && (!r.planned || !now.Before(r.at))
}

// printSettled says what became of the targets.
func printSettled(t *terminal, results []result) error {
	failed := int64(0)
	for _, r := range results {
		if r.request == nil || r.err != nil {
			continue
		}
		counts := r.gate.Status.Targets
		held := fmt.Sprintf("%d of %d targets held", counts.Held, counts.Total)
		if r.gate.Audits() {
			held += fmt.Sprintf(", %d would be (mode Audit)", counts.WouldHold)
		}
		t.say("%s: done, %s, %d suspended by others, %d failed", nameOfGate(r.gate), held, counts.SuspendedByOthers, counts.Failed)
		for _, f := range r.gate.Status.TargetFailures() {
			t.say("  %s %s/%s: %s: %s", f.Kind, f.Namespace, f.Name, f.Reason, f.Message)
		}
		failed += counts.Failed
	}
	if failed > 0 {
		return exitCode(exitIncomplete)
	}
	return nil
}

// progressBar shows on standard error how far something is, in a terminal alone.
type progressBar struct {
	t     *terminal
	shown bool
}

const barWidth = 30

func (b *progressBar) show(done, total int64) {
	if !isTerminal(b.t.ErrOut) || total == 0 {
		return
	}
	n := int(done * barWidth / total)
	fmt.Fprintf(b.t.ErrOut, "\r[%s%s] %d/%d targets", strings.Repeat("#", n), strings.Repeat(".", barWidth-n), done, total)
	b.shown = true
}

// clear removes the bar.
func (b *progressBar) clear() {
	if b.shown {
		fmt.Fprint(b.t.ErrOut, "\r\x1b[K")
		b.shown = false
	}
}
