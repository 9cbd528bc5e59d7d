// The gating-controller holds and releases the objects that Gates govern.
package main

import (
	"fmt"
	"os"
	_ "time/tzdata" // zones do not depend on the image

	flag "github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/internal/app"
)

func main() {
	var options app.Options
	options.BindFlags(flag.CommandLine)
	flag.Parse()

	if err := app.Run(ctrl.SetupSignalHandler(), options); err != nil {
		fmt.Fprintln(os.Stderr, "gating-controller:", err)
		os.Exit(1)
	}
}
