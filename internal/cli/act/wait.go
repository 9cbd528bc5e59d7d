package act

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// waitForTargets waits until all Gates and their targets have reached the requested state, and shows the progress.
func waitForTargets(ctx context.Context, t *term.Terminal, c *kube.Cluster, timeout time.Duration, results []result) error {
	bar := &progressBar{t: t}
	defer bar.clear()
	deadline := t.Clock.Now().Add(timeout)
	for {
		left, sum, total := 0, int64(0), int64(0)
		for i := range results {
			r := &results[i]
			if r.request == nil || r.err != nil {
				continue
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(r.gate), r.gate); err != nil {
				return kube.NewCall("get", "gates", r.gate.Namespace, r.gate.Name, "gate-viewer").Explain(err)
			}
			done, of, settled := progressOf(r.gate, r.request, t.Clock.Now())
			sum, total = sum+done, total+of
			if !settled {
				left++
			}
		}
		if left == 0 {
			break
		}
		bar.show(sum, total)
		if t.Clock.Now().After(deadline) {
			bar.clear()
			fmt.Fprintf(t.ErrOut, "error: after %s, %s; the controller continues\n", timeout, describeProgress(results, sum, total, t.Clock.Now()))
			return term.ExitCode(term.ExitTimeout)
		}
		if err := t.Sleep(ctx, kube.WaitInterval); err != nil {
			return err
		}
	}
	bar.clear()
	return printSettled(t, results)
}

// describeProgress describes how many targets out of total have reached the desired state, or that a planned request has not begun.
func describeProgress(results []result, sum, total int64, now time.Time) string {
	for _, r := range results {
		if r.request != nil && r.err == nil && r.request.planned && now.Before(r.request.at) {
			return fmt.Sprintf("the request has not begun, it is planned for %s", term.FormatTime(r.request.at))
		}
	}
	return fmt.Sprintf("%d of %d targets have reached the desired state", sum, total)
}

// progressOf returns the number of targets of a Gate that have reached the desired state (done), and the number of all targets (total).
// settled is true if the request has taken full effect.
func progressOf(g *v1alpha1.Gate, r *request, now time.Time) (done, total int64, settled bool) {
	counts := g.Status.Targets
	if counts == nil {
		return 0, 0, false
	}
	total = counts.Total
	done = total - counts.Held - counts.Pending
	if describe.State(g) == string(v1alpha1.StateClosed) {
		done = total - counts.Pending
	}
	return max(0, done), total, describe.IsSettled(g) && (!r.planned || !now.Before(r.at))
}

// printSettled prints the state of the targets.
func printSettled(t *term.Terminal, results []result) error {
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
		t.Line("%s: done, %s, %d suspended by others, %d failed", kube.FullName(r.gate), held, counts.SuspendedByOthers, counts.Failed)
		for _, f := range r.gate.Status.TargetFailures() {
			t.Line("  %s %s/%s: %s: %s", f.Kind, f.Namespace, f.Name, f.Reason, f.Message)
		}
		failed += counts.Failed
	}
	if failed > 0 {
		return term.ExitCode(term.ExitIncomplete)
	}
	return nil
}

// progressBar shows progress on standard error. It does nothing unless standard error is a terminal.
type progressBar struct {
	t     *term.Terminal
	shown bool
}

const barWidth = 30

func (b *progressBar) show(done, total int64) {
	if !term.IsTerminal(b.t.ErrOut) || total == 0 {
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
