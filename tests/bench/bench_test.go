package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// maxWrites bounds the writes of a transition per target that one Gate governs.
	maxWrites = 2
	// fewWrites bounds the difference in writes per target between the bare client and the controller.
	fewWrites = 0.02
	// edges is the number of transitions for the quantiles of a size.
	edges = 5
)

// cluster is shared by all benchmarks, which run in the order of this file: each uses the targets that earlier ones have created.
var cluster bench

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if err := cluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// started returns the cluster, and starts it for the first benchmark.
func started(b *testing.B) *bench {
	b.Helper()
	if cluster.cluster == nil {
		must(b, cluster.start(context.Background()))
	}
	b.Cleanup(func() {
		if b.Failed() && cluster.gating != nil {
			_ = cluster.keepLog()
			_ = cluster.stopController()
		}
	})
	return &cluster
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// figures are values by their units.
type figures map[string]float64

// report reports the measurements of its parent as a separate benchmark, so that benchstat can compare them.
func report(b *testing.B, name string, all figures) {
	b.Run(name, func(b *testing.B) {
		b.ReportMetric(0, "ns/op") // the subtest itself measures nothing
		for unit, value := range all {
			b.ReportMetric(value, unit)
		}
	})
}

// BenchmarkMemory measures the memory of a controller with a Gate for all targets: open after a start, and with all targets held.
func BenchmarkMemory(b *testing.B) {
	c := started(b)
	for n := *targets / 10; n <= *targets; n *= 10 {
		memoryOf(b, c, n)
	}
}

// memoryOf measures the memory of a controller with n targets.
func memoryOf(b *testing.B, c *bench, n int) {
	b.Helper()
	empty, err := c.memoryWithout(b.Context())
	must(b, err)
	f, err := c.oneGate(b.Context(), n)
	must(b, err)
	open, held, err := c.memoryOf(b.Context(), f, n <= maxHeld)
	must(b, err)
	states := map[string]memory{"open": open}
	if n <= maxHeld {
		states["held"] = held
	}
	for state, m := range states {
		report(b, fmt.Sprintf("targets=%d/state=%s", n, state), figures{
			"heap-MiB": m.heap / mebi, "resident-MiB": m.resident / mebi, "peak-MiB": m.peak / mebi, "heap-KiB/target": (m.heap - empty.heap) / float64(n) / 1024,
		})
	}
}

// BenchmarkTransition closes and opens all targets with the controller and, as the baseline, with a client that sends the same patches
// without decisions: once without a watch, and once with an informer on all targets.
func BenchmarkTransition(b *testing.B) {
	c := started(b)
	for _, name := range []string{"one", "many"} {
		create, n := c.oneGate, *targets
		if name == "many" {
			create, n = c.manyGates, n/targetsOfEach
		}
		f, err := create(b.Context(), n)
		must(b, err)
		t, seen, err := c.controllerTurn(b.Context(), f)
		must(b, err)
		for _, watches := range []bool{false, true} {
			t.bare[watches], err = c.yardstickTurn(b.Context(), seen, watches)
			must(b, err)
		}
		for _, closed := range []bool{true, false} {
			reportTransition(b, fmt.Sprintf("gates=%s/edge=%s", name, edgeName(closed)), f, t, closed)
		}
		must(b, c.startController(b.Context()))
		must(b, c.removeGates(b.Context(), f.gates))
		must(b, c.stopController())
	}
}

// reportTransition reports a turn. It fails if the controller was early or wrote too much.
func reportTransition(b *testing.B, name string, f *fleet, t turn, closed bool) {
	b.Helper()
	ours, n := t.controller[closed], float64(len(f.targets))
	writes := ours.used.accepted().of(kustomizations.Resource).total() / n
	if ours.first() < 0 || writes > maxWrites {
		b.Errorf("%s: the first target changed %s after the scheduled instant, with %g writes per target", name, ours.first(), writes)
	}
	report(b, name+"/client=controller", figures{
		"first-s": ours.first().Seconds(), "last-s": ours.last().Seconds(), "written-s": ours.written.Seconds(),
		"writes/target": writes, "writes/gate": ours.used.accepted().of("gates").total() / float64(len(f.gates)), "reads/target": ours.used.calls.lookups().total() / n,
		"conflicts": ours.used.conflicts.total(), "p99-write-s": ours.used.latencies.quantile(.99), "cpu-s": ours.used.controller.Seconds(), "apiserver-cpu-s": ours.used.server.Seconds(),
	})
	for watches, client := range map[bool]string{false: "bare", true: "informer"} {
		bare := t.bare[watches][closed]
		sent := bare.writes.of(kustomizations.Resource).total() / n
		if math.Abs(sent-writes) > fewWrites {
			b.Errorf("%s: the %s client sent %g writes per target, the controller %g: their times are not comparable", name, client, sent, writes)
		}
		report(b, name+"/client="+client, figures{
			"last-s": bare.last.Seconds(), "written-s": bare.took.Seconds(), "writes/target": sent, "apiserver-cpu-s": bare.server.Seconds(),
		})
	}
}

// BenchmarkPrecision measures the time from a scheduled instant to the first and the last target, for Gates of several sizes.
// BenchmarkTransition has the largest one.
func BenchmarkPrecision(b *testing.B) {
	c := started(b)
	must(b, c.startController(b.Context()))
	for n := 1; n < *targets; n *= 10 {
		measured, err := c.edges(b.Context(), n, edges)
		must(b, err)
		for _, closed := range []bool{true, false} {
			l := lagsOf(measured[closed])
			if earliest := quantile(l.first, 0); earliest < 0 {
				b.Errorf("%d targets: the first one was %g s early", n, -earliest)
			}
			report(b, fmt.Sprintf("targets=%d/edge=%s", n, edgeName(closed)), figures{
				"first-p50-s": quantile(l.first, .5), "first-max-s": quantile(l.first, 1), "last-p50-s": quantile(l.last, .5), "last-max-s": quantile(l.last, 1),
			})
		}
	}
	must(b, c.stopController())
}

// BenchmarkFairness closes Gates with one target while four others close, or open, thousands. The baseline is a write to another object.
func BenchmarkFairness(b *testing.B) {
	c := started(b)
	busy, err := c.busyFleet(b.Context())
	must(b, err)
	urgent, err := c.urgentGates(b.Context())
	must(b, err)
	must(b, c.startController(b.Context()))
	for _, closed := range []bool{true, false} {
		all, err := c.closesDuring(b.Context(), busy, urgent, closed)
		must(b, err)
		report(b, "during="+edgeName(closed)+"/request=close", figures{"p50-s": quantile(heldOf(all), .5), "p99-s": quantile(heldOf(all), .99), "requests": float64(len(all))})
		report(b, "during="+edgeName(closed)+"/request=write", figures{"p50-s": quantile(writesOf(all), .5), "p99-s": quantile(writesOf(all), .99), "requests": float64(len(all))})
	}
	must(b, c.removeGates(b.Context(), append(busy.gates, urgent.gates...)))
	must(b, c.stopController())
}

// BenchmarkIdle measures the cost while nothing changes, with a short resync interval for two minutes.
func BenchmarkIdle(b *testing.B) {
	c := started(b)
	f, err := c.closedFleet(b.Context())
	must(b, err)
	must(b, c.startController(b.Context()))
	resting, err := c.rest(b.Context(), f, true, 24*time.Hour, 0)
	must(b, err)
	busy, err := c.rest(b.Context(), f, true, idleInterval, float64(idleRounds*len(f.gates)))
	must(b, err)
	_, err = c.rest(b.Context(), f, true, time.Minute, 0)
	must(b, err)
	writes := busy.calls.writes()
	if writes.total() > 0 {
		b.Errorf("while nothing changed, the controller wrote: %s", writes)
	}
	share := resting.controller.Seconds() / resting.took.Seconds()
	report(b, fmt.Sprintf("gates=%d", len(f.gates)), figures{
		"writes": writes.total(), "reads": busy.calls.lookups().total(), "rest-cpu-ms/s": 1000 * share,
		"cpu-ms/reconcile": 1000 * (busy.controller.Seconds() - share*busy.took.Seconds()) / busy.reconciles,
	})
	must(b, c.stopController())
}

// BenchmarkStartup restarts the controller while all targets are held. The controller must not write anything.
func BenchmarkStartup(b *testing.B) {
	c := started(b)
	f, err := c.closedFleet(b.Context())
	must(b, err)
	r, err := c.restart(b.Context(), f)
	must(b, err)
	if r.writes.total() > 0 {
		b.Errorf("at a start, the controller wrote: %s", r.writes)
	}
	report(b, fmt.Sprintf("gates=%d", len(f.gates)), figures{
		"ready-s": r.ready.Seconds(), "verified-s": r.verified.Seconds(), "peak-MiB": r.peak / mebi, "writes": r.writes.total(),
	})
	must(b, c.release(b.Context(), f))
	c.closed = nil
}

// BenchmarkMemoryLargest is BenchmarkMemory with the largest number of targets. It runs last, because the cluster stays as large.
func BenchmarkMemoryLargest(b *testing.B) { memoryOf(b, started(b), *largest) }
