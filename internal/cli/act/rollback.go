package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// rollbackFlags are the flags of rollback.
type rollbackFlags struct{ to, reason, dryRun string }

// NewRollbackCommand returns the command rollback.
func NewRollbackCommand(k *kube.Factory) *cobra.Command {
	f := &rollbackFlags{}
	cmd := &cobra.Command{
		Use:   "rollback source/NAME",
		Short: "Move a GatedSource back to a revision that was promoted before",
		Long: `Move a GatedSource back to a revision that was promoted before, even while its Gates are closed.

The Gates stay closed, and you need the verb open on each closed Gate. If none is closed, you need the verb approve on the GatedSource. Settings
that keep a Gate closed in spite of an open request, such as a close period with override: Deny, also prevent rollbacks. The exit code is 3 if the
controller refuses the rollback.

The pin stays at that revision until the next approval. Without spec.approvals, it stays until the source has a revision that was not seen before the
rollback, and the Gates are open. kubectl gate history source/NAME lists the revisions.`,
		Example: `  # Back to the revision that was promoted before the current one
  kubectl gate rollback source/apps -n shop --reason "checkout fails"

  # Back to a certain revision
  kubectl gate rollback source/apps --to main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11`,
		Args: kube.ExactlyOne("source/NAME"),
	}
	cmd.Flags().StringVar(&f.to, "to", "", "A revision in status.promotions. Defaults to the revision before the current one, except revisions that were rolled back.")
	cmd.Flags().StringVar(&f.reason, "reason", "", "The reason, for the history and events. Truncated to 512 bytes.")
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", "none, or server: the API server checks the request, and nothing is changed.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := kube.ValidateDryRun(f.dryRun); err != nil {
			return err
		}
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		kind, key, err := kube.ParseName(args[0], c.Namespace, kube.SourceKind)
		if err == nil && kind != kube.SourceKind {
			err = fmt.Errorf("%q is not a GatedSource: name it as source/NAME", args[0])
		}
		if err != nil {
			return err
		}
		return runRollback(cmd.Context(), k.Terminal, c, key, f, now)
	}
	return cmd
}

// runRollback requests a rollback of a GatedSource, and prints how the controller handles it.
func runRollback(ctx context.Context, t *term.Terminal, c *kube.Cluster, key client.ObjectKey, f *rollbackFlags, now time.Time) error {
	g, err := c.GatedSource(ctx, key)
	if err != nil {
		return err
	}
	if f.to == "" {
		f.to = promotion.Previous(g)
	}
	if err := mayRollBack(g, f.to); err != nil {
		return err
	}
	through := ""
	if len(g.Status.HeldBy) > 0 {
		through = " through " + strings.Join(g.Status.HeldBy, ", ")
	}
	t.Line("gatedsource %s: rolling back from %s to %s%s", key, g.Status.Pinned.Revision, f.to, through)
	value := promotion.FormatRollback(g, f.to, now)
	err = patchStamped(ctx, c, g, map[string]string{
		v1alpha1.RollbackRequestedAtAnnotation: value, v1alpha1.RollbackGatesAnnotation: gate.PassGates(g.Status.HeldBy), v1alpha1.RollbackReasonAnnotation: f.reason,
	}, v1alpha1.RollbackRequestedByAnnotation, f.dryRun)
	if err != nil {
		return kube.NewCall("patch", "gatedsources", g.Namespace, g.Name, "gate-opener").Explain(err)
	}
	if f.dryRun == "server" {
		t.Line("the API server would accept this (dry run); to roll back: %s rollback source/%s -n %s --to %s", t.Program, g.Name, g.Namespace, annotations.ShellQuote(f.to))
		return nil
	}
	requested, err := annotations.Rollback.Parse(value)
	if err != nil {
		return err
	}
	if err := awaitRollback(ctx, t, c, g, requested.At.Truncate(time.Microsecond)); err != nil {
		return t.Incomplete(err)
	}
	return nil
}

// mayRollBack returns an error if the GatedSource shows that it cannot be rolled back. The API server and the controller have the final
// decision.
func mayRollBack(g *v1alpha1.GatedSource, revision string) error {
	what := fmt.Sprintf("gatedsource %s/%s", g.Namespace, g.Name)
	switch pinned := g.Status.Pinned; {
	case pinned == nil:
		return fmt.Errorf("%s: nothing is pinned yet", what)
	case g.Spec.Suspend:
		return fmt.Errorf("%s: it is suspended, so the controller would not handle the request", what)
	case g.Spec.Revision != "":
		return fmt.Errorf("%s: its spec.revision pins %s, change it instead", what, g.Spec.Revision)
	case revision == "":
		return fmt.Errorf("%s: its status lists no revision that was promoted before %s", what, pinned.Revision)
	case revision == pinned.Revision:
		return fmt.Errorf("%s: %s is pinned already", what, revision)
	case !slices.ContainsFunc(g.Status.Promotions, func(p v1alpha1.Promotion) bool { return p.Revision == revision }):
		return fmt.Errorf("%s: %s is not among its last %d promotions; to list them: kubectl gate history source/%s -n %s -o wide",
			what, revision, v1alpha1.MaxPromotions, g.Name, g.Namespace)
	}
	return nil
}

// awaitRollback waits until the controller has moved the pin or refused the request, and prints the result.
func awaitRollback(ctx context.Context, t *term.Terminal, c *kube.Cluster, g *v1alpha1.GatedSource, at time.Time) error {
	return poll(ctx, t, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil {
			return false, kube.NewCall("get", "gatedsources", g.Namespace, g.Name, kube.SourceApproverRole).Explain(err)
		}
		s := &g.Status
		switch r := s.Rollback; {
		case r == nil || !r.RequestedAt.Time.Equal(at):
			return false, nil
		case r.Refused != "":
			return false, errors.New("the controller refused this: " + r.Refused)
		case s.Promoting != nil:
			return false, nil
		}
		t.Line("gatedsource %s/%s: pinned to %s", g.Namespace, g.Name, s.Pinned.Revision)
		return true, nil
	})
}
