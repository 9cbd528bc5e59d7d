// Package act contains the commands that open, close and approve.
package act

import (
	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
)

// NewOpenCommand returns the command open.
func NewOpenCommand(k *kube.Factory) *cobra.Command {
	return newRequestCommand(k, v1alpha1.RequestOpen, &cobra.Command{
		Use:   "open NAME...",
		Short: "Open Gates manually",
		Long: `Open Gates manually.

The request ends all close requests. It lasts until a user closes the Gate, or for --for or until --until, and at most for spec.window of the Gate.
The Gate still stays closed in a close period with override: Deny, and while a dependency is not ready. With spec.approvals.openRequests, other users
must approve the request first. The exit code is 3 in these cases.

With --only or --only-selector, the request opens some targets, and the state of the Gate does not change. The request does not end close requests
for the whole Gate. After its end, these targets have the state of the Gate again. --only-selector selects targets by their current labels.`,
		Example: `  # For an hour
  kubectl gate open production --for 1h --reason "hotfix 1234"

  # For two targets only, while the others stay held
  kubectl gate open production --only kustomization/apps --only helmrelease/redis --for 2h --reason "hotfix 1234"

  # Tomorrow at eight, and wait until all targets are released
  kubectl gate open production --at "tomorrow 08:00" --until "tomorrow 17:30" --wait`,
	})
}
