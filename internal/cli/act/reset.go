package act

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// NewResetCommand returns the command reset.
func NewResetCommand(k *kube.Factory) *cobra.Command {
	f, only := &requestFlags{}, []string(nil)
	cmd := &cobra.Command{
		Use:   "reset NAME...",
		Short: "Withdraw requests, so that the schedule applies again",
		Long: `Withdraw the requests of Gates, so that their schedule applies again. It may leave a Gate open or closed.

reset withdraws the requests in force, to open or to close, of any user and of webhooks. thaw withdraws only the close requests of freeze, and close
makes a request instead of withdrawing any.

To withdraw an open request, reset makes a close request without a duration, and to withdraw close requests an open request without a duration. So you
need the permission to close or to open, and with spec.approvals.openRequests others must approve the withdrawal of a close request. If no request is in force,
reset withdraws requests that wait for approval or are planned: open requests, or your own close requests.

With --only, reset withdraws requests for the named targets only. Such a request stays in force for its other targets, and requests for the whole
Gate do not change. A planned request is withdrawn only if all of its targets are named.`,
		Example: `  # The hotfix is out
  kubectl gate reset production --reason "hotfix 1234 is out"

  # Withdraw a request for one of its targets
  kubectl gate reset production --only kustomization/apps`,
	}
	cmd.Flags().StringArrayVar(&only, "only", nil, "A target as KIND/NAME, such as kustomization/apps, whose requests are withdrawn. Requests for the whole Gate do not change. Can be repeated, up to 16 times.")
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Names = args
		now, err := k.Now()
		if err != nil {
			return err
		}
		refs, err := kube.ParseTargets(only)
		if err == nil && len(refs) > v1alpha1.MaxRequestTargets {
			err = fmt.Errorf("--only names %d targets, and a request can have %d", len(refs), v1alpha1.MaxRequestTargets)
		}
		if err != nil {
			return err
		}
		_, err = requestGates(cmd.Context(), k, f, func(g *v1alpha1.Gate) (*request, error) {
			if r := withdraw(g, now, f.reason, refs...); r != nil {
				return r, nil
			}
			return nil, skipError("has no request to withdraw")
		})
		return err
	}
	return cmd
}

// withdraw returns the request that withdraws the requests of a Gate that are in force. If none is in force, it withdraws the planned and
// waiting requests. It returns nil if there are no requests. Requests that the controller has not handled yet also count. If there are
// targets, it withdraws requests with targets, and only for these targets.
func withdraw(g *v1alpha1.Gate, now time.Time, reason string, only ...v1alpha1.TargetReference) *request {
	g = g.DeepCopy()
	gate.ApplyRequests(g, ledger.Stamped, now) // without stamps, a request that needs approvals only waits
	inForce, planned := ledger.RequestsAt(g, now)
	targets := requestTargets(g, only)
	if targets != nil {
		named := func(t v1alpha1.RequestTarget) bool { return slices.Contains(targets, t) }
		inForce = slices.DeleteFunc(inForce, func(r v1alpha1.AcceptedRequest) bool { return !slices.ContainsFunc(r.Targets, named) })
		planned = slices.DeleteFunc(planned, func(r v1alpha1.AcceptedRequest) bool {
			return r.Targets == nil || slices.ContainsFunc(r.Targets, func(t v1alpha1.RequestTarget) bool { return !named(t) })
		})
	}
	all, planning := inForce, ""
	if len(all) == 0 {
		all, planning = planned, "planned "
	}
	if len(all) == 0 {
		return nil
	}
	r := &request{action: v1alpha1.RequestClose, at: now.Truncate(time.Microsecond), reason: reason, withdraws: true, targets: targets}
	if all[0].Action == v1alpha1.RequestClose {
		r.action = v1alpha1.RequestOpen
	}
	var words []string
	for _, a := range all {
		if a.Action != all[0].Action {
			continue
		}
		r.ends = append(r.ends, a)
		if a.State == v1alpha1.RequestWaiting {
			words = append(words, "the waiting "+describeWithdrawn(a))
			continue
		}
		words = append(words, fmt.Sprintf("the %s%s", planning, describeWithdrawn(a)))
	}
	r.words = strings.Join(words, " and ")
	if targets != nil {
		r.words += ", for " + ledger.FormatTargets(targets)
	}
	return r
}

// requestTargets returns references as targets of a request.
func requestTargets(g *v1alpha1.Gate, refs []v1alpha1.TargetReference) (targets []v1alpha1.RequestTarget) {
	for _, ref := range refs {
		t := v1alpha1.RequestTarget{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
		if t.Namespace == g.Namespace {
			t.Namespace = ""
		}
		targets = append(targets, t)
	}
	return targets
}

// describeWithdrawn describes a request by its action, requester and reason.
func describeWithdrawn(a v1alpha1.AcceptedRequest) string {
	text := fmt.Sprintf("%s request of %s", a.Action, cmp.Or(a.RequestedBy, "an unknown user"))
	if a.Targets != nil {
		text += " only for " + ledger.FormatTargets(a.Targets)
	}
	if a.Message != "" {
		text += fmt.Sprintf(" (%s)", a.Message)
	}
	return text
}
