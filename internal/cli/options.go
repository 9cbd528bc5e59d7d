package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// usage is the template of cobra without the global flags, which are listed by kubectl gate options.
var usage = strings.NewReplacer(
	`{{if .HasAvailableInheritedFlags}}

Global Flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}`, `{{if .HasAvailableInheritedFlags}}

Use "{{.Root.DisplayName}} options" for the flags of all commands, such as --namespace, --context and --timezone.{{end}}`,
	`{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}`, `{{if and .HasAvailableLocalFlags .HasParent}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if not .HasParent}}

Use "{{.DisplayName}} options" for the flags of all commands, such as --namespace, --context and --timezone.{{end}}`,
).Replace((&cobra.Command{}).UsageTemplate())

func newOptionsCommand(t *term.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "List the flags of all commands",
		Example: "  kubectl gate options",
		GroupID: "Set up",
		Run: func(cmd *cobra.Command, _ []string) {
			t.Line("These flags work with every command:\n\n%s", cmd.Root().PersistentFlags().FlagUsages())
		},
	}
}
