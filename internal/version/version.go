// Package version provides the version of the build.
package version

import (
	"fmt"
	"runtime/debug"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// release is the version of a release. It is set by the linker.
var release string

// Release returns the version of the release. For other builds, it returns the version of the module, which is (devel) for builds from a
// working tree.
func Release() string {
	version := release
	if info, ok := debug.ReadBuildInfo(); version == "" && ok {
		version = info.Main.Version
	}
	if version == "" {
		version = "(devel)"
	}
	return version
}

// String returns the version of the release and the version of the time zone data.
func String() string { return fmt.Sprintf("%s, time zone data %s", Release(), tz.Version()) }
