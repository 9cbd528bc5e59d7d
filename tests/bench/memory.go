package bench

import (
	"context"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxHeld is up to how many targets they are held as well: closing more takes too long.
const maxHeld = 10000

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
