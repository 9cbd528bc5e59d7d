package cli

import (
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"
)

// run executes a command at an instant and returns its exit code.
func run(args []string, in io.Reader, out, errOut io.Writer, now time.Time) int {
	return Run(append([]string{"kubectl-gate"}, args...), genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut}, testclock.NewFakeClock(now))
}
