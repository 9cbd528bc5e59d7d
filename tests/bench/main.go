// The bench measures the gating-controller on the real etcd and kube-apiserver and
// writes docs/contribute/benchmarks.md. The controller is the real program as a process of its
// own; what it wrote is taken from the counters of the API server.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/go-logr/logr"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func main() {
	o := options{}
	only, args := flag.String("only", "", "Run these scenarios alone, by name and with commas between."), ""
	flag.BoolVar(&o.quick, "quick", false, "Small sizes, to try it. The page is written only into another folder.")
	flag.IntVar(&o.targets, "targets", 0, "How many targets the large scenarios have, 0 for 10000, or few if quick.")
	flag.IntVar(&o.repeats, "repeats", 0, "How often what is compared is repeated, 0 for the default of the scenario.")
	flag.StringVar(&o.out, "out", "", "The folder of the page, none for docs of the repository.")
	flag.StringVar(&args, "controller-args", "", "More flags for the controller, with blanks between.")
	flag.BoolVar(&o.pprof, "keep-profiles", false, "Store a CPU profile of the controller for each transition.")
	flag.Parse()
	o.controllerArgs = strings.Fields(args)
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "The bench failed:", err)
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	only           []string
	quick, pprof   bool
	targets        int
	repeats        int
	out            string
	controllerArgs []string
}

// many is how many targets the large scenarios have.
func (o options) many() int {
	switch {
	case o.targets > 0:
		return o.targets
	case o.quick:
		return 200
	}
	return 10000
}

// repeat is how often what is compared is repeated.
func (o options) repeat(usual int) int {
	switch {
	case o.repeats > 0:
		return o.repeats
	case o.quick:
		return 1
	}
	return usual
}

func run(ctx context.Context, o options) (err error) {
	selected := scenarios
	if len(o.only) > 0 {
		selected = slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !slices.Contains(o.only, s.name) })
		if len(selected) != len(o.only) {
			return fmt.Errorf("there is a scenario that does not exist, there are: %s", names(scenarios))
		}
	}
	b := &bench{options: o, begin: time.Now(), commit: commitHere()}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(selected, func(s scenario) bool { return s.name == memoryGrowth.name }) {
		// Before anything makes the cluster larger than these.
		if err := b.measureMemory(ctx, slices.DeleteFunc(b.memorySizes(), func(n int) bool { return n > o.many() })); err != nil {
			return err
		}
	}
	var missed error
	for _, s := range selected {
		r, err := b.measure(ctx, s)
		if err != nil {
			return errors.Join(missed, err)
		}
		missed = errors.Join(missed, r.failure(s.name))
	}
	return missed
}

// measure runs a scenario and publishes what it measured, also if it missed a limit.
func (b *bench) measure(ctx context.Context, s scenario) (*result, error) {
	b.say("== %s", s.title)
	r, err := s.run(ctx, b)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.name, err), b.keepLog())
	}
	fmt.Println(r.text())
	if b.quick && b.out == "" {
		return r, nil
	}
	machine, err := b.machine()
	if err != nil {
		return nil, err
	}
	return r, publish(cmp.Or(b.out, filepath.Join(harness.Root(), "docs", "contribute")), machine, scenarios, s, r)
}
