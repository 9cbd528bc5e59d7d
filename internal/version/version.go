// Package version says what is built.
package version

import (
	"fmt"
	"runtime/debug"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// String returns the version of the module, which is (devel) for what is built from a
// working tree, and that of the time zone data.
func String() string {
	module := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		module = info.Main.Version
	}
	return fmt.Sprintf("%s, time zone data %s", module, tz.Version())
}
