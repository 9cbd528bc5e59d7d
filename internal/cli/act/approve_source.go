package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// approveRevision prints a GatedSource, approves one of its revisions, and prints the state of the GatedSource afterwards.
func approveRevision(ctx context.Context, t *term.Terminal, c *kube.Cluster, key client.ObjectKey, f *approveFlags, now time.Time) error {
	g, err := c.GatedSource(ctx, key)
	if err != nil {
		return err
	}
	printf := t.Line
	if !f.out.IsTable() {
		printf = t.ErrLine
	}
	printf("gatedsource %s/%s", g.Namespace, g.Name)
	for _, line := range describeSource(g, now) {
		printf("  %-10s %s", line[0], line[1])
	}
	if err := mayApproveRevision(g, t.Program, f.revision); err != nil {
		return err
	}
	opts := patchOptions(approvalOwner, f.dryRun)
	round := g.Status.Round
	if err := c.Patch(ctx, g.DeepCopy(), client.RawPatch(types.MergePatchType, revisionApproval(g, f, now)), opts...); err != nil {
		return refusedRevision(g, err)
	}
	if f.dryRun == "server" {
		printf("the API server would accept this (dry run); to approve it: %s approve source/%s -n %s --revision %s", t.Program, g.Name, g.Namespace, annotations.ShellQuote(f.revision))
		return nil
	}
	me := kube.CurrentUser(ctx, c)
	if err := awaitRevisionApproval(ctx, t, c, g, revisionApprover{f.revision, me, round}); err != nil {
		return t.Incomplete(err)
	}
	ready := describe.Condition(g.Status.Conditions, v1alpha1.ApprovedCondition)
	if g.Status.Pinned != nil && g.Status.Pinned.Revision == f.revision {
		printf("gatedsource %s/%s: approved by %s, pinned to %s", g.Namespace, g.Name, me, f.revision)
	} else {
		printf("gatedsource %s/%s: approved by %s. %s", g.Namespace, g.Name, me, ready.Message)
	}
	if f.out.IsTable() {
		return nil
	}
	return f.out.PrintObject(t.Out, term.AsManifest(g, v1alpha1.GatedSourceKind))
}

// describeSource returns lines about the followed source, the pinned and latest revisions, and the approvals.
func describeSource(g *v1alpha1.GatedSource, now time.Time) (lines [][2]string) {
	add := func(name, format string, args ...any) {
		lines = append(lines, [2]string{name, fmt.Sprintf(format, args...)})
	}
	add("follows", "%s %s", g.Spec.SourceRef.Kind, g.Spec.SourceRef.Name)
	if gated := g.Status.Pinned; gated != nil {
		add("pinned", "%s since %s", gated.Revision, term.FormatUntil(gated.At.Time, now))
	}
	if latest := g.Status.Latest; latest != nil {
		add("latest", "%s, seen %s, %d newer than the pinned one", latest.Revision, term.FormatUntil(latest.RecordedAt.Time, now), g.Status.Waiting)
	}
	for _, a := range g.Status.Approvals {
		add("approved", "%s by %s %s", a.Revision, a.ApprovedBy, term.FormatUntil(a.RecordedAt.Time, now))
	}
	return lines
}

// mayApproveRevision returns an error if the GatedSource shows that a revision cannot be approved. The API server has the final decision.
func mayApproveRevision(g *v1alpha1.GatedSource, command, revision string) error {
	seen := slices.ContainsFunc(g.Status.Seen, func(is v1alpha1.SeenRevision) bool { return is.Revision == revision }) ||
		slices.ContainsFunc(g.Status.Promotions, func(p v1alpha1.Promotion) bool { return p.Revision == revision })
	switch {
	case g.RequiredApprovals() == 0:
		return errors.New("it takes no approvals: its spec.approvals requires none")
	case g.Spec.Revision != "":
		return fmt.Errorf("it takes no approvals: its spec.revision is %s", g.Spec.Revision)
	case revision == "" && g.Status.Pending == nil:
		return errors.New("no revision is waiting; to roll back, name one with --revision")
	case revision == "":
		return fmt.Errorf("specify the revision that you approve: %s approve source/%s -n %s --revision %s", command, g.Name, g.Namespace, annotations.ShellQuote(g.Status.Pending.Revision))
	case !seen:
		return fmt.Errorf("the status of the source does not list %s", revision)
	}
	return nil
}

// revisionApproval returns the patch that approves a revision in the round that was printed.
func revisionApproval(g *v1alpha1.GatedSource, f *approveFlags, now time.Time) []byte {
	set := map[string]string{v1alpha1.ApproveRequestedAtAnnotation: promotion.FormatApproval(g, f.revision, now)}
	if f.reason != "" {
		set[v1alpha1.ApproveReasonAnnotation] = f.reason
	}
	return annotationPatch(set, "")
}

// refusedRevision returns the error to print if the API server has rejected the approval of a revision.
func refusedRevision(g *v1alpha1.GatedSource, err error) error {
	a := kube.NewCall("patch", "gatedsources", g.Namespace, g.Name, kube.SourceApproverRole)
	if !apierrors.IsForbidden(err) || !kube.IsPolicyDenial(err) {
		return a.Explain(err)
	}
	if text := kube.DenialMessage(err); !strings.Contains(text, "needs the verb approve") {
		return errors.New("refused: " + text)
	}
	return errors.New(a.Denied("approve"))
}

// revisionApprover is the user who approved a revision, with the round.
type revisionApprover struct {
	revision, by string
	round        int64
}

// awaitRevisionApproval waits until the controller has counted an approval or promoted the approved revision.
func awaitRevisionApproval(ctx context.Context, t *term.Terminal, c *kube.Cluster, g *v1alpha1.GatedSource, a revisionApprover) error {
	return poll(ctx, t, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(g), g); err != nil {
			return false, kube.NewCall("get", "gatedsources", g.Namespace, g.Name, kube.SourceApproverRole).Explain(err)
		}
		says := describe.Condition(g.Status.Conditions, v1alpha1.ApprovedCondition)
		counted := slices.ContainsFunc(g.Status.Approvals, func(is v1alpha1.RevisionApproval) bool { return is.ApprovedBy == a.by && is.Revision == a.revision })
		switch {
		case g.Status.Round != a.round && (g.Status.Pinned == nil || g.Status.Pinned.Revision != a.revision):
			return false, fmt.Errorf("another revision was promoted since, or the spec of the source has changed, so that the approval does not count: %s", says.Message)
		case strings.Contains(says.Message, "do not count"):
			return false, errors.New("the controller does not count this: " + says.Message)
		}
		return g.Status.Round != a.round || counted && g.Status.Promoting == nil, nil
	})
}
