// Package cli builds kubectl gate with its commands, flags, completion and exit codes. The commands are in the packages see, act and
// plan. A command reads the clock once, reads from the cluster, and prints the results of pure functions.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/cli/act"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/plan"
	"github.com/fluxcd/gating-controller/internal/cli/see"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/version"
)

// Run executes a command line and returns the exit code. The first argument is the program name.
func Run(args []string, streams genericiooptions.IOStreams, clock clock.WithTicker) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := &kube.Factory{Terminal: &term.Terminal{IOStreams: streams, Clock: clock, Program: programName(args[0])}}
	root := newRoot(k)
	root.SetArgs(completionArgs(args))
	return exitCodeFor(k.Terminal, root.ExecuteContext(ctx))
}

// Names of the program other than kubectl-gate.
const (
	fluxGate = "flux-gate"
	// completionProgram is the program that kubectl runs to complete the arguments of kubectl gate.
	completionProgram = "kubectl_complete-gate"
)

// baseName returns the name of a program without its folder.
func baseName(program string) string { return strings.TrimSuffix(filepath.Base(program), ".exe") }

// Command returns the root command for generators of docs.
func Command() *cobra.Command {
	return newRoot(&kube.Factory{Terminal: &term.Terminal{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Clock: clock.RealClock{}, Program: term.PluginName}})
}

// programName returns the name of the program for texts, as a plugin of kubectl or flux.
func programName(program string) string {
	if baseName(program) == fluxGate {
		return "flux gate"
	}
	return term.PluginName
}

// completionArgs returns the arguments for cobra: the arguments of the command line, or a request for completions if kubectl runs
// completionProgram.
func completionArgs(args []string) []string {
	if baseName(args[0]) == completionProgram {
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args[1:]
}

// newRoot returns the root command with all subcommands.
func newRoot(k *kube.Factory) *cobra.Command {
	root := &cobra.Command{
		Use:           strings.ReplaceAll(k.Program, " ", "-"),
		Short:         "List, open and close Gates, and explain what they hold",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: k.Program},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(k.In)
	root.SetOut(k.Out)
	root.SetErr(k.ErrOut)
	k.Flags = genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag()
	k.Flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&k.TimeZone, "timezone", "", "The time zone of times in arguments and outputs: a name of the IANA database, such as Europe/Oslo. Defaults to that of this machine.")
	root.PersistentFlags().StringVar(&k.ZoneInfo, "zoneinfo", "", "A zip file or folder with compiled time zones to use instead of the built-in ones, such as /usr/share/zoneinfo. Defaults to the variable "+term.ZoneInfoVariable+".")
	root.PersistentFlags().StringVar(&k.Color, "color", "auto", "Use colors: always, never, or auto, which means in a terminal unless NO_COLOR is set.")
	root.PersistentFlags().StringSliceVar(&k.SuspendKinds, "suspend-kinds", nil, "The kinds that Gates hold in addition to the built-in ones, as in the flag of the controller. Defaults to those of the controllers, if you may list Deployments.")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains([]string{"always", "never", "auto"}, k.Color) {
			return fmt.Errorf("--color=%s: use always, never or auto", k.Color)
		}
		return k.UseZoneInfo()
	}
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, add := range group.commands {
			cmd := add(k)
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newOptionsCommand(k.Terminal))
	root.SetUsageTemplate(usage)
	completion{Factory: k}.addTo(root)
	setProgramName(k.Terminal, root)
	return root
}

// setProgramName sets the name of the program in the help texts of a command and its subcommands.
func setProgramName(t *term.Terminal, cmd *cobra.Command) {
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example} {
		*text = t.WithProgram(*text)
	}
	for _, sub := range cmd.Commands() {
		setProgramName(t, sub)
	}
}

// groups are the groups of commands, in the order of the help text.
var groups = []struct {
	title    string
	commands []func(*kube.Factory) *cobra.Command
}{
	{"See", []func(*kube.Factory) *cobra.Command{
		see.NewListCommand, see.NewStatusCommand, see.NewWhyCommand, see.NewPendingCommand, see.NewHistoryCommand, see.NewWaitCommand, see.NewUICommand,
	}},
	{"Open and close", []func(*kube.Factory) *cobra.Command{
		act.NewOpenCommand, act.NewCloseCommand, act.NewResetCommand, act.NewFreezeCommand, act.NewThawCommand,
		act.NewPassCommand, act.NewExceptionCommand, act.NewApproveCommand, act.NewRollbackCommand, act.NewProceedCommand,
	}},
	{"Look ahead", []func(*kube.Factory) *cobra.Command{plan.NewValidateCommand, plan.NewPreviewCommand, plan.NewDiffCommand}},
	{"Set up", []func(*kube.Factory) *cobra.Command{see.NewCheckCommand, plan.NewKindsCommand, see.NewVersionCommand}},
}

// exitCodeFor prints an error and returns the exit code for it.
func exitCodeFor(t *term.Terminal, err error) int {
	var code term.ExitCode
	var invalid *preview.InvalidError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &invalid):
		for _, fault := range invalid.Faults {
			fmt.Fprintln(t.ErrOut, fault)
		}
	default:
		fmt.Fprintln(t.ErrOut, "error:", t.WithProgram(term.OneLine(err.Error())))
	}
	return term.ExitError
}
