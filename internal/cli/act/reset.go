package act

import (
	"cmp"
	"fmt"
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
	f := &requestFlags{}
	cmd := &cobra.Command{
		Use:   "reset NAME...",
		Short: "Withdraw requests, so that the schedule applies again",
		Long: `Withdraw the requests of Gates, so that their schedule applies again. It may leave a Gate open or closed.

reset withdraws the requests in force, to open or to close, of any user and of webhooks. thaw withdraws only the close requests of freeze, and close
makes a request instead of withdrawing any.

To withdraw an open request, reset makes a close request without a duration, and to withdraw close requests an open request without a duration. So you
need the permission to close or to open, and with spec.approvals.openRequests others must approve the withdrawal of a close request. If no request is in force,
reset withdraws requests that wait for approval or are planned: open requests, or your own close requests.`,
		Example: `  # The hotfix is out
  kubectl gate reset production --reason "hotfix 1234 is out"`,
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.Names = args
		now, err := k.Now()
		if err != nil {
			return err
		}
		_, err = requestGates(cmd.Context(), k, f, func(g *v1alpha1.Gate) (*request, error) {
			if r := withdraw(g, now, f.reason); r != nil {
				return r, nil
			}
			return nil, skipError("has no request to withdraw")
		})
		return err
	}
	return cmd
}

// withdraw returns the request that withdraws the requests of a Gate that are in force. If none is in force, it withdraws the planned and
// waiting requests. It returns nil if there are no requests. Requests that the controller has not handled yet also count.
func withdraw(g *v1alpha1.Gate, now time.Time, reason string) *request {
	g = g.DeepCopy()
	gate.ApplyRequests(g, ledger.Stamped, now) // without stamps, a request that needs approvals only waits
	inForce, planned := ledger.RequestsAt(g, now)
	all, planning := inForce, ""
	if len(all) == 0 {
		all, planning = planned, "planned "
	}
	if len(all) == 0 {
		return nil
	}
	r := &request{action: v1alpha1.RequestClose, at: now.Truncate(time.Microsecond), reason: reason, withdraws: true}
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
	return r
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
