package kube

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// ExactlyOne returns a validator for exactly one argument.
func ExactlyOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return errors.New("name " + what)
		case len(args) > 1:
			return fmt.Errorf("name %s, not %d", what, len(args))
		}
		return nil
	}
}

// ValidateDryRun returns an error unless the value of --dry-run is none or server.
func ValidateDryRun(value string) error {
	if !slices.Contains([]string{"none", "server"}, value) {
		return fmt.Errorf("--dry-run=%s: use none or server", value)
	}
	return nil
}
