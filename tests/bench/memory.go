package bench

import (
	"context"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxHeld is the largest number of targets that are also measured while held. Closing more takes too long.
const maxHeld = 10000

// memoryOf returns the memory of a controller that has just started with a fleet and, if requested, while it holds the fleet. It removes
// the Gates.
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
	b.logf("%d targets: heap %.1f MiB, resident %.1f MiB", n, open.heap/mebi, open.resident/mebi)
	if holds {
		if _, err := b.transition(ctx, f, true); err != nil {
			return open, held, err
		}
		if held, err = b.settledMemory(ctx); err != nil {
			return open, held, err
		}
		b.logf("%d held targets: heap %.1f MiB, resident %.1f MiB", n, held.heap/mebi, held.resident/mebi)
		if _, err := b.transition(ctx, f, false); err != nil {
			return open, held, err
		}
	}
	if err := b.removeGates(ctx, f.gates); err != nil {
		return open, held, err
	}
	return open, held, b.stopController()
}

// memoryWithout returns the memory of a controller that has just started, without Gates.
func (b *bench) memoryWithout(ctx context.Context) (m memory, err error) {
	if err := b.startController(ctx); err != nil {
		return m, err
	}
	if m, err = b.settledMemory(ctx); err != nil {
		return m, err
	}
	return m, b.stopController()
}

// settledMemory measures the memory once there are no more writes.
func (b *bench) settledMemory(ctx context.Context) (m memory, err error) {
	if _, err := b.quiet(ctx); err != nil {
		return m, err
	}
	// The heap is measured twice, because finalizers of the first collection free more.
	for range 2 {
		if m, err = b.useOfMemory(ctx); err != nil {
			return m, err
		}
		time.Sleep(time.Second)
	}
	return m, nil
}
