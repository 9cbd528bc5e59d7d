// Command kubectl-gate is the command-line tool for Gates. It is a plugin of kubectl and flux.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/cli"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(cli.Run(os.Args, streams, clock.RealClock{}))
}
