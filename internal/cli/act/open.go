package act

import (
	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
)

func NewOpenCommand(k *kube.Factory) *cobra.Command {
	return newRequestCommand(k, v1alpha1.RequestOpen, &cobra.Command{
		Use:   "open NAME...",
		Short: "Open Gates by hand",
		Long: `Open Gates by hand.

The request ends all close requests, and lasts until somebody closes the Gate, or as long as you say. A Gate with spec.window
does not stay open longer than that. A close period with override: Deny, and a dependency of the Gate, keep it closed all the
same, and with spec.approvals.openRequests others have to approve the request first. The exit code is 3 then.`,
		Example: `  # For an hour
  kubectl gate open production --for 1h --reason "hotfix 1234"

  # Tomorrow at eight, and wait until all targets are released
  kubectl gate open production --at "tomorrow 08:00" --until "tomorrow 17:30" --wait`,
	})
}
