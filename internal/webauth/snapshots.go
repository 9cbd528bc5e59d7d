package webauth

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/fluxcd/gating-controller/internal/limit"
)

// snapshots caches the targets of each Gate for all viewers. It reads the targets of one Gate at a time.
type snapshots struct {
	clock   clock.PassiveClock
	limiter *limit.Limiter
	byGate  *cache.LRUExpireCache
}

// snapshot contains all targets of a Gate, including targets that a viewer may not see.
type snapshot struct {
	lines []line
	notes []string
}

func newSnapshots(clock clock.PassiveClock) *snapshots {
	return &snapshots{clock, limit.New(1, 1, readShare, readBurst), cache.NewLRUExpireCacheWithClock(maxSnapshots, clock)}
}

// errNoSlot is returned if the targets of a Gate cannot be read because the targets of other Gates are being read.
var errNoSlot = errors.New(msgTargetsBusy)

// get returns the cached snapshot of a Gate, or calls read to take a new one on behalf of a viewer. It returns errNoSlot if other reads
// leave no time for this.
func (s *snapshots) get(ctx context.Context, gate types.UID, viewer string, read func(context.Context, *snapshot) error) (*snapshot, error) {
	if stored, ok := s.byGate.Get(gate); ok {
		return stored.(*snapshot), nil //nolint:forcetypeassert // it stores nothing else
	}
	waits, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	end, err := s.limiter.Begin(waits, viewer)
	if err != nil {
		return nil, errNoSlot
	}
	begin := s.clock.Now()
	defer func() { end(s.clock.Since(begin)) }()
	if stored, ok := s.byGate.Get(gate); ok {
		return stored.(*snapshot), nil //nolint:forcetypeassert // as above
	}
	ctx, cancel = context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	taken := &snapshot{}
	if err := read(ctx, taken); err != nil {
		return nil, err
	}
	s.byGate.Add(gate, taken, max(snapshotAge, agePerCost*s.clock.Since(begin)))
	return taken, nil
}
