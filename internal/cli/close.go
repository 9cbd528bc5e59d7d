package cli

import (
	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func (s *session) closeCommand() *cobra.Command {
	return s.requestCommand(v1alpha1.RequestClose, &cobra.Command{
		Use:   "close NAME...",
		Short: "Close Gates by hand",
		Long: `Close Gates by hand.

The request ends an open request. It lasts as long as you say. Without --for and --until it lasts for spec.window of the Gate, or until
somebody opens the Gate if that has no window. No webhook opens what a person has closed.`,
		Example: `  # Until somebody opens it
  kubectl gate close production --reason "incident 77"

  # All that belong to a team, until Monday
  kubectl gate close -l team=payments --until "monday 08:00"`,
	})
}
