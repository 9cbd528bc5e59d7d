// Package version has the version of the build.
package version

import (
	"fmt"
	"runtime/debug"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// release is the version of a release, which its linker sets.
var release string

// Release returns the version of the release. Other builds have the version of the module, which is (devel) for those
// from a working tree.
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

// String returns the version, and that of the time zone data.
func String() string { return fmt.Sprintf("%s, time zone data %s", Release(), tz.Version()) }
