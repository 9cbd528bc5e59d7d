package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// parallel is how many tests run at the same time unless -parallel says so: they wait for
// others most of the time, so more than there are cores.
const parallel = "16"

// gcPercent is that of the test programs themselves. Less garbage collection saves processor time.
const gcPercent = 400

// Setup prepares what the tests of a package share. It returns how to end it, also with
// an error; nil if there is nothing to end.
type Setup func(context.Context) (func() error, error)

// RunTests runs the tests of a package, a testing.M, on a control plane of their
// own that it stores in cluster, and returns their exit code.
func RunTests(m interface{ Run() int }, cluster **ControlPlane, projects ...string) int {
	return RunTestsAfter(nil, m, cluster, projects...)
}

// RunTestsAfter is RunTests after a setup.
func RunTestsAfter(setup Setup, m interface{ Run() int }, cluster **ControlPlane, projects ...string) int {
	ctrl.SetLogger(logr.Discard())
	debug.SetGCPercent(gcPercent)
	endWithGo()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	code, err := runTests(setup, m, cluster, projects...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// endWithGo has this process killed when the go command is that runs it. It would go on
// alone.
func endWithGo() {
	parent := os.Getppid()
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if strings.TrimSpace(string(name)) != "go" {
		return
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	if os.Getppid() != parent {
		os.Exit(1)
	}
}

func runTests(setup Setup, m interface{ Run() int }, cluster **ControlPlane, projects ...string) (code int, err error) {
	c, err := StartControlPlane(projects...)
	if err != nil {
		return 1, fmt.Errorf("starting the control plane: %w", err)
	}
	*cluster = c
	defer func() { err = errors.Join(err, c.Stop()) }()
	// The output of kubectl gate check must not depend on the day.
	zones := filepath.Join(c.Dir(), "zoneinfo.zip")
	if err := errors.Join(tztest.Fresh(zones, time.Now()), os.Setenv("GATE_ZONEINFO", zones)); err != nil {
		return 1, err
	}
	if setup != nil {
		stop, setupErr := setup(context.Background())
		if stop != nil {
			defer func() { err = errors.Join(err, stop()) }()
		}
		if setupErr != nil {
			return 1, fmt.Errorf("setting up: %w", setupErr)
		}
	}
	return m.Run(), nil
}
