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

// parallel is the number of concurrent tests unless -parallel is set. It exceeds the number of cores, because tests mostly wait.
const parallel = "16"

// gcPercent is the GOGC of the test programs. Less garbage collection saves CPU time.
const gcPercent = 400

// Setup prepares the shared state of the tests of a package. It returns a function for the cleanup, or nil if there is nothing to clean up.
// It may return both a function and an error.
type Setup func(context.Context) (func() error, error)

// RunTests runs the tests of a package, a testing.M, on a new control plane that it stores in cluster, and returns their exit code.
func RunTests(m interface{ Run() int }, cluster **ControlPlane, projects ...string) int {
	return RunTestsAfter(nil, m, cluster, projects...)
}

// RunTestsAfter is like RunTests, but calls setup once the control plane has started. setup may be nil.
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

// endWithGo makes the kernel kill this process when the go command that runs it is killed. Otherwise the process would continue.
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
	// The output of kubectl gate check must not depend on the date.
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
