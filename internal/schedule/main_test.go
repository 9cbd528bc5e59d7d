package schedule_test

import (
	"flag"
	"os"
	"testing"

	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// TestMain sets the number of rapid checks above the default of 100. Each takes a fraction of a millisecond. All tests run with wrong
// system zones.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(tztest.Run(m))
}
