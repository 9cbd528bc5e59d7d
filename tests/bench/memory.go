package main

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

var memoryGrowth = scenario{
	name: "memory", title: "Memory", run: runMemory,
	about: `
One open Gate governs all Kustomizations of the cluster. "Heap" is what is in use after garbage collection, "resident" all memory of
the process, which follows with a delay and keeps room for the work. The controller keeps of each target its metadata, who
owns what holds it, and its conditions. The size of the objects in the API server does not count otherwise.

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

func runMemory(ctx context.Context, b *bench) (*result, error) {
	r := &result{}
	if err := b.measureMemory(ctx, b.memorySizes()); err != nil {
		return nil, err
	}
	t := table{title: "Memory of the controller", columns: []string{"targets", "heap in MiB", "heap per target in KiB", "resident in MiB"}}
	heap, resident := series{name: "heap after garbage collection"}, series{name: "resident"}
	var added [][2]float64
	empty := b.memory[0]
	sizes := []int{}
	for n := range b.memory {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	for _, n := range sizes {
		m := b.memory[n]
		if n == 0 {
			t.row(n, m.heap/mebi, "", m.resident/mebi)
			continue
		}
		t.row(n, m.heap/mebi, (m.heap-empty.heap)/float64(n)/1024, m.resident/mebi)
		heap.points = append(heap.points, [2]float64{float64(n), m.heap / mebi})
		resident.points = append(resident.points, [2]float64{float64(n), m.resident / mebi})
		added = append(added, [2]float64{float64(n), m.heap - empty.heap})
	}
	r.figure("Exponent of the heap against targets", exponent(added), "", "without what the controller has with no targets")
	last := sizes[len(sizes)-1]
	r.figure("Heap per target", (b.memory[last].heap-empty.heap)/float64(last)/1024, "KiB", "at the largest size")
	r.tables = append(r.tables, t)
	r.plots = append(r.plots, plot{file: "memory", title: "Memory of the controller", xLabel: "targets", yLabel: "MiB", series: []series{heap, resident}})
	return r, nil
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

func (b *bench) measureMemoryOf(ctx context.Context, n int) error {
	var gates []client.ObjectKey
	if n == 0 {
		if err := b.startController(ctx); err != nil {
			return err
		}
	} else {
		f, err := b.oneGate(ctx, n)
		if err != nil {
			return err
		}
		if err := b.startController(ctx); err != nil {
			return err
		}
		if err := b.observer.every(ctx, f.gates, "settled", func(gate *v1alpha1.Gate) bool {
			return settled(gate, false) && gate.Status.Targets.Total == int64(n)
		}); err != nil {
			return err
		}
		gates = f.gates
		defer func() {
			b.say("%d targets: heap %.1f MiB, resident %.1f MiB", n, b.memory[n].heap/mebi, b.memory[n].resident/mebi)
		}()
	}
	if _, err := b.quiet(ctx); err != nil {
		return err
	}
	// The heap is asked for twice: finalizers of the first collection free more.
	var m memory
	for range 2 {
		var err error
		if m, err = b.useOfMemory(ctx); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	b.memory[n] = m
	if n > 0 {
		if err := b.removeGates(ctx, gates); err != nil {
			return err
		}
	}
	return b.stopController()
}
