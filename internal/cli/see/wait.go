package see

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// NewWaitCommand returns the command wait.
func NewWaitCommand(k *kube.Factory) *cobra.Command {
	var state string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait NAME...",
		Short: "Wait until Gates are open or closed",
		Long: `Wait until all of these Gates are open at once, or all of them are closed.

A Gate counts as open only if it certainly is: not while it is suspended, and not while its spec is invalid or has changed since the last decision. It counts
as closed only if the last decision on its current spec, or a transition that is due, closes it. The command ends with 0, or with 124 after --timeout. You need the verb get on the Gates.`,
		Example: `  # A pipeline deploys once production is open
  kubectl gate wait production --for=open --timeout=4h && ./deploy.sh

  # Wait until a freeze has begun
  kubectl gate wait production --for=closed`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&state, "for", "open", "The state to wait for: open or closed.")
	term.AddTimeoutFlag(cmd, &timeout)
	cmd.Flags().Lookup("timeout").Usage = "How long to wait."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if state != "open" && state != "closed" {
			return fmt.Errorf("--for=%s: use open or closed", state)
		}
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		return waitFor(cmd.Context(), k.Terminal, c, args, state, now.Add(timeout))
	}
	return cmd
}

// waitFor waits until Gates have a state, and prints each Gate when all have it. After the first read, it retries reads that fail because the
// API server is unavailable.
func waitFor(ctx context.Context, t *term.Terminal, c *kube.Cluster, names []string, state string, deadline time.Time) error {
	for known := false; ; {
		now := t.Clock.Now()
		gates, err := readWithin(ctx, c, names, max(time.Second, deadline.Sub(now)))
		var other string
		switch {
		case err != nil && (!known || !isTransient(err) || ctx.Err() != nil):
			return err
		case err != nil:
			other = err.Error()
		default:
			known = true
			now = t.Clock.Now()
			for _, g := range gates {
				if !hasState(g, state, now) {
					other = fmt.Sprintf("%s is not %s; for details: kubectl gate why gate/%s -n %s", kube.FullName(g), state, g.Name, g.Namespace)
				}
			}
		}
		switch {
		case other == "":
			for _, g := range gates {
				t.Line("%s: %s", kube.FullName(g), state)
			}
			return nil
		case !now.Before(deadline):
			fmt.Fprintf(t.ErrOut, "error: %s\n", other)
			return term.ExitCode(term.ExitTimeout)
		}
		if err := t.Sleep(ctx, kube.WaitInterval); err != nil {
			return err
		}
	}
}

// readWithin reads Gates within a timeout.
func readWithin(ctx context.Context, c *kube.Cluster, names []string, timeout time.Duration) ([]*v1alpha1.Gate, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.Gates(ctx, kube.Scope{Names: names})
}

// isTransient returns whether a read may succeed later: the API server is overloaded, restarts, or cannot be reached.
func isTransient(err error) bool {
	reason := apierrors.ReasonForError(err)
	return errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || slices.Contains([]metav1.StatusReason{
		metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTooManyRequests, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout, metav1.StatusReasonInternalError,
	}, reason)
}

func hasState(g *v1alpha1.Gate, state string, now time.Time) bool {
	if state == "open" {
		return gate.ReportedOpen(g, now)
	}
	return describe.State(g) != describe.UnknownState && g.Generation == g.Status.ObservedGeneration && !gate.IsOpen(g, now)
}
