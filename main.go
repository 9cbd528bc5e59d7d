// Command gating-controller holds and releases the objects that Gates govern.
package main

import (
	"fmt"
	"os"

	flag "github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/internal/app"
	"github.com/fluxcd/gating-controller/internal/version"
)

func main() {
	var options app.Options
	options.BindFlags(flag.CommandLine)
	printVersion := flag.Bool("version", false, "Print the version of the controller and that of its time zone data, and exit.")
	flag.Parse()
	if *printVersion {
		fmt.Println("gating-controller", version.String())
		return
	}

	if err := app.Run(ctrl.SetupSignalHandler(), options); err != nil {
		fmt.Fprintln(os.Stderr, "gating-controller:", err)
		os.Exit(1)
	}
}
