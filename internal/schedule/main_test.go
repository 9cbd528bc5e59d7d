package schedule_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain asks rapid for more than its default of 100 checks, each of which is
// a fraction of a millisecond.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
