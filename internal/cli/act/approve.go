package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// approveFlags are the flags of approve.
type approveFlags struct {
	generation       int64
	revision, reason string
	// request is the ID of a request of a Gate.
	request string
	dryRun  string
	out     *term.Output
}

// NewApproveCommand returns the command approve.
func NewApproveCommand(k *kube.Factory) *cobra.Command {
	f := &approveFlags{}
	cmd := &cobra.Command{
		Use:   "approve exception/NAME | gate/NAME | source/NAME",
		Short: "Approve a GateException or an open request of another user, or a revision of a GatedSource",
		Long: `Approve a GateException or the open request of a Gate by another user, or a revision of a GatedSource.

exception/NAME prints the exception and approves the printed generation: if the exception is edited in the meantime, the approval is refused. To read
it first, use --dry-run=server, and then approve the --generation that you have read. This needs config/policies and the ClusterRole
gate-exception-approver.

gate/NAME, or NAME alone, does the same with the open request of a Gate that waits because of spec.approvals.openRequests. To read it first, use
--dry-run=server, and then approve the --request that you have read. This needs the ClusterRole gate-approver.

source/NAME approves the --revision of a GatedSource. If another revision is promoted in the meantime, or the spec of the source changes, the approval
is refused. Before you approve, kubectl gate pending --diff shows what the revision would change in the cluster. This needs the ClusterRole
gated-source-approver.`,
		Example: `  # Read the exception, and check whether you may approve it
  kubectl gate approve exception/hotfix --dry-run=server

  # Approve exactly that generation
  kubectl gate approve exception/hotfix --generation 1

  # The open request of a Gate
  kubectl gate approve gate/production

  # Approve a revision of a GatedSource, and no other
  kubectl gate approve source/apps --revision main@sha1:2f5b9f5c0a4a0f4b2e6c0b8b7b1c0e6f2b7f3a11`,
		Args: kube.ExactlyOne("exception/NAME, gate/NAME or source/NAME"),
	}
	f.out = term.NewOutput(cmd)
	cmd.Flags().Int64Var(&f.generation, "generation", 0, "With exception/NAME: approve only this generation. Defaults to the current one.")
	cmd.Flags().StringVar(&f.request, "request", "", "With gate/NAME: approve only this request. Defaults to the only one that waits.")
	cmd.Flags().StringVar(&f.revision, "revision", "", "With source/NAME: the revision to approve, as in the status.")
	cmd.Flags().StringVar(&f.reason, "reason", "", "With source/NAME: the reason, for the status and events. Truncated to 256 bytes.")
	cmd.Flags().StringVar(&f.dryRun, "dry-run", "none", "none, or server: the API server checks the approval, and nothing is changed.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := kube.ValidateDryRun(f.dryRun); err != nil {
			return err
		}
		c, now, err := k.Connect()
		if err != nil {
			return err
		}
		kind, key, err := kube.ParseName(args[0], c.Namespace, kube.ExceptionKind, kube.GateKind, kube.SourceKind)
		if err == nil {
			err = f.check(kind)
		}
		switch {
		case err != nil:
			return err
		case kind == kube.ExceptionKind:
			return approveException(cmd.Context(), k.Terminal, c, key, f, now)
		case kind == kube.SourceKind:
			return approveRevision(cmd.Context(), k.Terminal, c, key, f, now)
		}
		return approveRequest(cmd.Context(), k.Terminal, c, key, f, now)
	}
	return cmd
}

// check returns an error if a flag is set that does not apply to the kind.
func (f *approveFlags) check(kind kube.Kind) error {
	for _, flag := range []struct {
		name  string
		isSet bool
		kind  kube.Kind
	}{
		{"generation", f.generation != 0, kube.ExceptionKind}, {"request", f.request != "", kube.GateKind},
		{"revision", f.revision != "", kube.SourceKind}, {"reason", f.reason != "", kube.SourceKind},
	} {
		if flag.isSet && flag.kind != kind {
			return fmt.Errorf("--%s is for %s/NAME", flag.name, flag.kind.Word)
		}
	}
	return nil
}

// approveException prints an exception, approves it, and prints the state of the exception afterwards.
func approveException(ctx context.Context, t *term.Terminal, c *kube.Cluster, key client.ObjectKey, f *approveFlags, now time.Time) error {
	e, err := c.Exception(ctx, key)
	if err != nil {
		return err
	}
	g, err := c.GateAt(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Spec.GateRef.Name})
	if err != nil {
		g = nil // a user may be permitted to read exceptions, but not Gates
	}
	printf := t.Line
	if !f.out.IsTable() {
		printf = t.ErrLine
	}
	printf("%s, generation %d", exceptionTitle(e), e.Generation)
	for _, line := range describeException(t, e, g, now) {
		printf("  %-10s %s", line[0], line[1])
	}
	me := kube.CurrentUser(ctx, c)
	if err := mayApprove(e, me, f.generation, now); err != nil {
		return err
	}
	opts := patchOptions(approvalOwner, f.dryRun)
	err = c.Patch(ctx, e.DeepCopy(), client.RawPatch(types.MergePatchType, approval(e, now)), opts...)
	if err != nil {
		return refusedApproval(e, err)
	}
	if f.dryRun == "server" {
		printf("the API server would accept this (dry run); to approve it: %s approve exception/%s -n %s --generation %d", t.Program, e.Name, e.Namespace, e.Generation)
	} else {
		if err := awaitExceptionApproval(ctx, t, c, e, me); err != nil {
			return t.Incomplete(err)
		}
		printf("%s: approved by %s, %s", exceptionTitle(e), me, describeApprovals(e, g, now))
	}
	if f.out.IsTable() {
		return nil
	}
	return printException(t, f.out, e)
}

// approval returns the patch that approves the version of an exception that was read.
func approval(e *v1alpha1.GateException, now time.Time) []byte {
	return annotationPatch(map[string]string{v1alpha1.ApproveRequestedAtAnnotation: gate.FormatApproval(e, now)}, "")
}

// mayApprove returns an error if the exception shows that the user cannot approve it. generation is the value of --generation, 0 if it is
// not set. The API server has the final decision.
func mayApprove(e *v1alpha1.GateException, me string, generation int64, now time.Time) error {
	authors := exceptionAuthors(e)
	switch {
	case generation != 0 && generation != e.Generation:
		return fmt.Errorf("generation %d is outdated, the current one is %d: read the exception again before you approve it", generation, e.Generation)
	case e.ExpiredBy(now):
		return fmt.Errorf("it ended at %s: an approval has no effect", term.FormatTime(e.Spec.ValidUntil.In(now.Location())))
	case len(authors) == 0:
		return errors.New("its authors are unknown, because it was created without config/policies, so it cannot be approved: delete it and create it again")
	case slices.Contains(authors, me):
		return fmt.Errorf("you, %s, wrote it: another user must approve it", me)
	case me != "" && slices.Contains(exceptionApprovers(e), me):
		return fmt.Errorf("you, %s, have approved generation %d already", me, e.Generation)
	}
	return nil
}

// refusedApproval returns the error to print if the API server has rejected an approval.
func refusedApproval(e *v1alpha1.GateException, err error) error {
	a := kube.NewCall("patch", "gateexceptions", e.Namespace, e.Name, kube.ApproverRole)
	if !apierrors.IsForbidden(err) || !kube.IsPolicyDenial(err) {
		return a.Explain(err)
	}
	text := kube.DenialMessage(err)
	switch text, _, stale := strings.Cut(text, "; read it again"); {
	case strings.Contains(text, "needs the verb approve"):
		return errors.New(a.Denied("approve"))
	case stale:
		return fmt.Errorf("it was edited after you read it: %s; run the command again to read it", text)
	}
	return errors.New("refused: " + text)
}

// awaitExceptionApproval waits until the controller has counted the user's approval, or returns an error with the reason why it does
// not count.
func awaitExceptionApproval(ctx context.Context, t *term.Terminal, c *kube.Cluster, e *v1alpha1.GateException, me string) error {
	generation := e.Generation
	return poll(ctx, t, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, kube.NewCall("get", "gateexceptions", e.Namespace, e.Name, kube.ApproverRole).Explain(err)
		}
		if e.Generation != generation {
			return false, fmt.Errorf("approved, but the exception was edited: the approval does not count for generation %d", e.Generation)
		}
		if why := doesNotCount(e); why != "" {
			return false, errors.New("the controller does not count this: " + why)
		}
		return slices.Contains(exceptionApprovers(e), me), nil
	})
}

// doesNotCount returns why the controller does not count the approvals of an exception, empty if it counts them.
func doesNotCount(e *v1alpha1.GateException) string {
	for part := range strings.SplitSeq(describe.Condition(e.Status.Conditions, v1alpha1.ActiveCondition).Message, "; ") {
		if strings.Contains(part, "do not count") {
			return part
		}
	}
	return ""
}
