package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

var memoryGrowth = scenario{
	name: "memory", title: "Memory", run: runMemory,
	about: `
One Gate governs all Kustomizations of the cluster. "Heap" is what is in use after garbage collection, "resident" all memory of
the process, which follows with a delay and keeps room for the work. The controller keeps of each target its metadata, who
owns what holds it, and its conditions. The size of the objects in the API server does not count otherwise.

Each size is measured with the Gate open, by a controller that has just started. Up to 10000 targets it is measured once more when
the same process has closed the Gate and holds all of them, with what the close has left in its memory: closing more takes too long
here. Open is the lesser of the two: a target that was never held has no condition of the controller. Among the open ones are those
that were held for a smaller size or by an earlier part of the run.

The exponent is the slope in logarithms of what the targets add to the heap of a controller without any: 1 is linear, less is
better, more is worse.`,
}

// memorySizes are how many targets there are. The last is reached by nothing else.
func (b *bench) memorySizes() []int {
	if b.quick {
		return []int{20, 100, 400}
	}
	return []int{1000, 5000, 10000, 20000, 50000}
}

// maxHeld is up to how many targets they are held as well.
const maxHeld = 10000

// memories are what the controller used, by the number of targets.
type memories map[int]memory

func (m memories) sizes() []int { return slices.Sorted(maps.Keys(m)) }

// added returns what some targets added to the heap of a controller without any.
func (m memories) added(n int, empty memory) float64 { return m[n].heap - empty.heap }

// perTarget is that in KiB for each of them.
func (m memories) perTarget(n int, empty memory) float64 {
	return m.added(n, empty) / float64(n) / 1024
}

func runMemory(ctx context.Context, b *bench) (*result, error) {
	if err := b.measureMemory(ctx, b.memorySizes()); err != nil {
		return nil, err
	}
	return memoryResult(b.memory, b.memoryHeld), nil
}

// memoryResult is of what was used with open Gates, with no targets as well, and with
// closed ones.
func memoryResult(open, held memories) *result {
	r, empty := &result{}, open[0]
	t := table{title: "Memory of the controller", columns: []string{"targets", "heap in MiB, open", "held", "heap per target in KiB, open", "held", "resident in MiB, open", "held"}}
	for _, n := range open.sizes() {
		cells := []any{n, open[n].heap / mebi, "", "", "", open[n].resident / mebi, ""}
		if n > 0 {
			cells[3] = open.perTarget(n, empty)
		}
		if m, measured := held[n]; measured {
			cells[2], cells[4], cells[6] = m.heap/mebi, held.perTarget(n, empty), m.resident/mebi
		}
		t.row(cells...)
	}
	r.tables = append(r.tables, t)
	p := plot{file: "memory", title: "Memory of the controller", xLabel: "targets", yLabel: "MiB"}
	for _, of := range []struct {
		name     string
		measured memories
	}{{"open", open}, {"held", held}} {
		heap, resident := series{name: of.name + ": heap after garbage collection"}, series{name: of.name + ": resident"}
		var added [][2]float64
		last := 0
		for _, n := range of.measured.sizes() {
			if n == 0 {
				continue
			}
			heap.points = append(heap.points, [2]float64{float64(n), of.measured[n].heap / mebi})
			resident.points = append(resident.points, [2]float64{float64(n), of.measured[n].resident / mebi})
			added, last = append(added, [2]float64{float64(n), of.measured.added(n, empty)}), n
		}
		if last == 0 {
			continue
		}
		what := "Exponent of the heap against targets, " + of.name
		r.figure(what, exponent(added), "", "without what the controller has with no targets")
		r.grown(what, exponent(added))
		r.figure("Heap per target, "+of.name, of.measured.perTarget(last, empty), "KiB", fmt.Sprintf("of %d targets", last))
		p.series = append(p.series, heap, resident)
	}
	r.plots = append(r.plots, p)
	return r
}

// measureMemory measures sizes that the cluster has not outgrown yet.
func (b *bench) measureMemory(ctx context.Context, sizes []int) error {
	for _, n := range append([]int{0}, sizes...) {
		if _, done := b.memory[n]; done || len(b.groups[shared]) > n {
			continue
		}
		if err := b.measureMemoryOf(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureMemoryOf(ctx context.Context, n int) (err error) {
	if n == 0 {
		b.memory[n], err = b.memoryWithout(ctx)
		return err
	}
	f, err := b.oneGate(ctx, n)
	if err != nil {
		return err
	}
	open, held, err := b.memoryOf(ctx, f, n <= maxHeld)
	if err != nil {
		return err
	}
	b.memory[n] = open
	if n <= maxHeld {
		b.memoryHeld[n] = held
	}
	return nil
}

// memoryOf returns what a controller uses that has just started with a fleet, and what it uses once it holds that, if asked for. The
// Gates are removed.
func (b *bench) memoryOf(ctx context.Context, f *fleet, holds bool) (open, held memory, err error) {
	f.brisk = true
	if err := b.startController(ctx); err != nil {
		return open, held, err
	}
	n := len(f.targets)
	if err := b.observer.every(ctx, f.gates, "settled", func(gate *v1alpha1.Gate) bool {
		return settled(gate, false) && gate.Status.Targets.Total == int64(n)
	}); err != nil {
		return open, held, err
	}
	if open, err = b.settledMemory(ctx); err != nil {
		return open, held, err
	}
	b.say("%d targets: heap %.1f MiB, resident %.1f MiB", n, open.heap/mebi, open.resident/mebi)
	if holds {
		if _, err := b.transition(ctx, f, true); err != nil {
			return open, held, err
		}
		if held, err = b.settledMemory(ctx); err != nil {
			return open, held, err
		}
		b.say("%d held targets: heap %.1f MiB, resident %.1f MiB", n, held.heap/mebi, held.resident/mebi)
		if _, err := b.transition(ctx, f, false); err != nil {
			return open, held, err
		}
	}
	if err := b.removeGates(ctx, f.gates); err != nil {
		return open, held, err
	}
	return open, held, b.stopController()
}

// memoryWithout returns what a controller uses that has just started, without a Gate.
func (b *bench) memoryWithout(ctx context.Context) (m memory, err error) {
	if err := b.startController(ctx); err != nil {
		return m, err
	}
	if m, err = b.settledMemory(ctx); err != nil {
		return m, err
	}
	return m, b.stopController()
}

// settledMemory measures when nothing is written any more.
func (b *bench) settledMemory(ctx context.Context) (m memory, err error) {
	if _, err := b.quiet(ctx); err != nil {
		return m, err
	}
	// The heap is asked for twice: finalizers of the first collection free more.
	for range 2 {
		if m, err = b.useOfMemory(ctx); err != nil {
			return m, err
		}
		time.Sleep(time.Second)
	}
	return m, nil
}
