// kubectl-gate is a kubectl plugin for Gates.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/gating-controller/internal/version"
)

// Exit codes besides 0.
const (
	exitError           = 1
	exitInvalidManifest = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, time.Now()))
}

// run executes the command and returns its exit code.
func run(args []string, in io.Reader, out, errOut io.Writer, now time.Time) int {
	root := &cobra.Command{
		Use:           "kubectl-gate",
		Short:         "Work with Gates",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gate"},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.AddCommand(previewCommand(now))
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.Execute()
	var invalid *invalidManifestError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &invalid):
		for _, fault := range invalid.faults {
			fmt.Fprintln(errOut, fault)
		}
		return exitInvalidManifest
	}
	fmt.Fprintln(errOut, "error:", err)
	return exitError
}
