package act

import (
	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
)

// NewCloseCommand returns the command close.
func NewCloseCommand(k *kube.Factory) *cobra.Command {
	return newRequestCommand(k, v1alpha1.RequestClose, &cobra.Command{
		Use:   "close NAME...",
		Short: "Close Gates manually",
		Long: `Close Gates manually.

close makes a close request: it ends an open request and keeps the Gate closed, even when the schedule would open it. reset and thaw do the opposite:
they withdraw requests, and the schedule applies again.

The request lasts for --for or until --until. Without these flags it lasts for spec.window of the Gate, or until a user opens the Gate if it has no
window. No webhook opens a Gate that a user has closed.

With --only or --only-selector, the request holds some targets, and the state of the Gate does not change.`,
		Example: `  # Until a user opens it
  kubectl gate close production --reason "incident 77"

  # All that belong to a team, until Monday
  kubectl gate close -l team=payments --until "monday 08:00"`,
	})
}
