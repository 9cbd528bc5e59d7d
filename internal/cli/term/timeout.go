package term

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// durationFlag is a flag for a duration in the format used in specs.
type durationFlag time.Duration

func (d *durationFlag) String() string { return time.Duration(*d).String() }

func (d *durationFlag) Type() string { return "duration" }

func (d *durationFlag) Set(text string) error {
	parsed, err := v1alpha1.ParseDuration(text)
	*d = durationFlag(parsed)
	return err
}

// AddTimeoutFlag adds the flag --timeout to a command.
func AddTimeoutFlag(cmd *cobra.Command, timeout *time.Duration) {
	*timeout = 5 * time.Minute
	cmd.Flags().Var((*durationFlag)(timeout), "timeout", "How long to wait with --wait.")
}
