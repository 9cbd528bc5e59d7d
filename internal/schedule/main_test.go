package schedule_test

import (
	"flag"
	"os"
	"testing"

	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// TestMain asks rapid for more than its default of 100 checks. Each is
// a fraction of a millisecond. The zones of the machine are wrong for all tests.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(tztest.Run(m))
}
